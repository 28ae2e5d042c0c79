/*
 * Stage 90 · operate · dead_letters
 *
 * Lists the dead letters of a consumer group on the embedded bus, oldest first: id, reason, tries, when
 * it died, and which event and task it is about. The body itself is left out; the event has it.
 *
 * Called by   operators
 * Writes      nothing
 * Locks       nothing
 * Raises      42P01  the group has no queue here
 */
create or replace function aivedio.dead_letters(
  p_group text,
  p_limit integer default 100
)
returns jsonb
language plpgsql
stable
security definer  -- operators look without reading pgmq's tables
set search_path = ''
as $dead_letters$
declare
  v_letters jsonb;
begin
  execute pg_catalog.format(
    $letters$
      select coalesce(pg_catalog.jsonb_agg(
        pg_catalog.jsonb_build_object(
          'id', letter.msg_id,
          'error', letter.headers ->> 'error',
          'tries', letter.read_ct,
          'died_at', letter.archived_at,
          'event_id', letter.message -> 'event_id',
          'task_id', letter.headers ->> 'task',
          'tag', letter.headers ->> 'tag'
        )
        order by letter.msg_id
      ), '[]')
      from (select dead.* from pgmq.%I as dead order by dead.msg_id limit $1) as letter
    $letters$,
    'a_' || aivedio._bus_queue(p_group)
  )
  into v_letters
  using p_limit;
  return v_letters;
end;
$dead_letters$;

comment on function aivedio.dead_letters is
  'Stage 90: the dead letters of a consumer group, oldest first, with their reasons.';

grant execute on function aivedio.dead_letters to aivedio_operator;
