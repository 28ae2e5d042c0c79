/*
 * Stage 20 · poll · _reject_submit
 *
 * The provider did not take an attempt: it is over, and its task fails with a public code.
 *
 * Called by   settle_submit, holding stream → task → attempt
 * Writes      aivedio.task_attempts, aivedio.reconciliation_cases; what _emit writes
 * Locks       the case's row
 */
create or replace function aivedio._reject_submit(
  p_attempt      aivedio.task_attempts,
  p_error_class  text,
  p_error_code   text,
  p_error_detail text
)
returns aivedio.applied
language plpgsql
volatile
set search_path = ''
as $_reject_submit$
declare
  v_now  constant timestamptz := aivedio._clock();
  v_task aivedio.generation_tasks;
begin
  update aivedio.task_attempts as attempt
  set submit_state       = 'rejected',
      submit_lease_until = null,
      status             = 'failed',
      known_status       = 'failed',
      terminal_at        = v_now,
      next_poll_at       = null,
      cancel_state       = null,
      error_class        = p_error_class,
      error_code         = p_error_code,
      error_detail       = p_error_detail,
      updated_at         = v_now
  where attempt.id = p_attempt.id;

  perform aivedio._resolve_cases(
    'submit_unknown', p_attempt.id::text, 'not_accepted', 'aivedio',
    'the answer came late: the provider did not take it'
  );

  select task.*
  into strict v_task
  from aivedio.generation_tasks as task
  where task.id = p_attempt.task_id;

  if v_task.current_attempt_id <> p_attempt.id or v_task.status not in ('submitting', 'cancel_requested') then
    return aivedio._settled('applied', p_attempt.id);
  end if;

  v_task.status := 'failed';
  v_task.error_code := p_error_code;
  v_task.error_message := aivedio._public_error_message(p_error_code);
  v_task := aivedio._emit(v_task, p_attempt.id, 'submit', v_now);
  return aivedio._command_result('applied', v_task, true);
end;
$_reject_submit$;

comment on function aivedio._reject_submit is
  'Stage 20: end an attempt that the provider refused, and fail its task.';
