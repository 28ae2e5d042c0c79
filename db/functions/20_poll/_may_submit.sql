/*
 * Stage 20 · poll · _may_submit
 *
 * Whether an attempt that waits for submission is still wanted. One that another attempt has replaced, or
 * whose task ended, is withdrawn; one whose task should be canceled is canceled at once, for
 * nothing of it ever reached the provider.
 *
 * Called by   claim_submits, holding stream → task → attempt
 * Writes      aivedio.task_attempts; what _emit writes
 * Locks       nothing
 */
create or replace function aivedio._may_submit(p_attempt aivedio.task_attempts)
returns boolean
language plpgsql
volatile
set search_path = ''
as $_may_submit$
declare
  v_now  constant timestamptz := aivedio._clock();
  v_task aivedio.generation_tasks;
begin
  select task.*
  into strict v_task
  from aivedio.generation_tasks as task
  where task.id = p_attempt.task_id;

  if v_task.current_attempt_id = p_attempt.id and v_task.status in ('created', 'submitting') then
    return true;
  end if;

  update aivedio.task_attempts as attempt
  set submit_state = 'withdrawn',
      status       = 'canceled',
      known_status = 'canceled',
      terminal_at  = coalesce(attempt.terminal_at, v_now),
      cancel_state = null,
      next_poll_at = null,
      updated_at   = v_now
  where attempt.id = p_attempt.id;

  if v_task.current_attempt_id = p_attempt.id and v_task.status = 'cancel_requested' then
    v_task.status := 'canceled';
    perform aivedio._emit(v_task, p_attempt.id, 'submit', v_now);
  end if;
  return false;
end;
$_may_submit$;

comment on function aivedio._may_submit is
  'Stage 20: true when an attempt may be submitted; otherwise it is withdrawn.';
