/*
 * Stage 20 · poll · _lose_status
 *
 * So many polls failed in a row that nobody can say how the job stands: the attempt is unknown, and its task says so.
 * The next valid observation leads out again, to where the attempt was.
 *
 * Called by   _reschedule_poll, holding stream → task → attempt
 * Writes      aivedio.task_attempts; what _emit writes
 * Locks       nothing
 */
create or replace function aivedio._lose_status(p_attempt aivedio.task_attempts)
returns aivedio.applied
language plpgsql
volatile
set search_path = ''
as $_lose_status$
declare
  v_now  constant timestamptz := aivedio._clock();
  v_task aivedio.generation_tasks;
begin
  update aivedio.task_attempts as attempt
  set status     = 'unknown',
      updated_at = v_now
  where attempt.id = p_attempt.id;

  select task.*
  into strict v_task
  from aivedio.generation_tasks as task
  where task.id = p_attempt.task_id;

  if v_task.current_attempt_id <> p_attempt.id
    or v_task.status not in ('submitting', 'submitted', 'queued', 'running', 'cancel_requested')
  then
    return aivedio._settled('duplicate', p_attempt.id);
  end if;

  v_task.status := 'provider_status_unknown';
  v_task := aivedio._emit(v_task, p_attempt.id, 'poll', v_now);
  return aivedio._command_result('applied', v_task, true);
end;
$_lose_status$;

comment on function aivedio._lose_status is
  'Stage 20: say that an attempt''s status is unknown, with an event when it is the current one.';
