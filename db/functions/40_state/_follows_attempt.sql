/*
 * Stage 40 · state · _follows_attempt
 *
 * Whether a task is where its attempt's end brought it, and nothing final came after: only then may a provider's
 * correction move it. A published asset, a media failure or a discarded result are final.
 *
 * Called by   _judge_end
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._follows_attempt(
  p_task_status    text,
  p_attempt_status text
)
returns boolean
language plpgsql
immutable
set search_path = ''
as $_follows_attempt$
begin
  return case p_attempt_status
    when 'succeeded' then p_task_status in ('provider_succeeded', 'processing_media')
    else p_task_status = p_attempt_status
  end;
end;
$_follows_attempt$;

comment on function aivedio._follows_attempt is
  'Stage 40: whether a task''s status still is what its attempt''s end made it.';
