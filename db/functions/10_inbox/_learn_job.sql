/*
 * Stage 10 · inbox · _learn_job
 *
 * A signed callback that is too thin to be applied may still be the first to say under which id the provider holds an
 * attempt, while the answer to our submission is on its way, or lost. Then it is that answer: the attempt is
 * neither submitted again nor taken for lost, and can be polled; one that was given up meanwhile becomes a case.
 *
 * Called by   _process_callback
 * Writes      what _accept_submit writes
 * Locks       nothing more than the caller, then the case's row
 */
create or replace function aivedio._learn_job(
  p_attempt          uuid,
  p_profile          jsonb,
  p_provider_task_id text
)
returns aivedio.applied
language plpgsql
volatile
set search_path = ''
as $_learn_job$
declare
  v_attempt aivedio.task_attempts;
begin
  select attempt.*
  into v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = p_attempt
    and attempt.provider_task_id is null
    and (attempt.terminal_at is null or attempt.submit_state = 'withdrawn' or attempt.error_class = 'given_up');

  if not found or p_provider_task_id is null then
    return null;
  end if;
  return aivedio._accept_submit(v_attempt, p_profile, p_provider_task_id);
end;
$_learn_job$;

comment on function aivedio._learn_job is
  'Stage 10: record the provider''s id of an attempt that a thin callback brings; null when there is nothing to learn.';
