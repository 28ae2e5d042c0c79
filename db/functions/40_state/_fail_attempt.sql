/*
 * Stage 40 · state · _fail_attempt
 *
 * Ends an attempt, and its task if it is the current one, because a person decided that nothing will come of it. What
 * the provider says later is judged against this end, like any other.
 *
 * Called by   resolve_case, holding stream → task → attempt
 * Writes      aivedio.task_attempts; what _emit writes
 * Locks       nothing
 */
create or replace function aivedio._fail_attempt(
  p_attempt    uuid,
  p_error_code text
)
returns aivedio.generation_tasks
language plpgsql
volatile
set search_path = ''
as $_fail_attempt$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_attempt aivedio.task_attempts;
  v_task    aivedio.generation_tasks;
begin
  update aivedio.task_attempts as attempt
  set status       = 'failed',
      known_status = 'failed',
      terminal_at  = v_now,
      next_poll_at = null,
      cancel_state = null,
      submit_state = case attempt.submit_state when 'accepted' then 'accepted' else 'rejected' end,
      error_class  = 'given_up',
      error_code   = p_error_code,
      updated_at   = v_now
  where attempt.id = p_attempt
    and attempt.terminal_at is null
  returning attempt.* into v_attempt;

  if not found then
    return null;
  end if;

  select task.*
  into strict v_task
  from aivedio.generation_tasks as task
  where task.id = v_attempt.task_id;

  if v_task.current_attempt_id <> p_attempt or v_task.terminal_at is not null then
    return null;
  end if;

  v_task.status := 'failed';
  v_task.error_code := p_error_code;
  v_task.error_message := aivedio._public_error_message(p_error_code);
  return aivedio._emit(v_task, p_attempt, 'command', v_now);
end;
$_fail_attempt$;

comment on function aivedio._fail_attempt is
  'Stage 40: give up an attempt that is not over; answers the task if it failed with it, else null.';
