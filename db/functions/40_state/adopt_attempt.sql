/*
 * Stage 40 · state · adopt_attempt
 *
 * Takes the result of an old attempt after all: the task goes on with it as if it were the current one.
 * Explicit and audited, because the result was refused when it came, and may have been refunded. Allowed
 * while nothing is published or being processed; the attempt that was current is told to cancel, if it
 * still runs. The case of the late success is resolved.
 *
 * Called by   operators
 * Writes      aivedio.task_attempts, aivedio.reconciliation_cases, aivedio.operator_actions; what _emit writes
 * Locks       project stream → task → attempts → case
 * Raises      VC404  there is no such task, or the attempt is not one of it
 *             VC413  no reason is given
 */
create or replace function aivedio.adopt_attempt(
  p_tenant   uuid,
  p_project  uuid,
  p_task     uuid,
  p_attempt  uuid,
  p_who      text,
  p_reason   text
)
returns aivedio.applied
language plpgsql
volatile
security definer  -- operators adopt results without writing tables
set search_path = ''
as $adopt_attempt$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_task    aivedio.generation_tasks;
  v_attempt aivedio.task_attempts;
begin
  perform aivedio._require_reason(p_reason);

  perform 1
  from aivedio.task_attempts as attempt
  where attempt.id = p_attempt
    and attempt.task_id = p_task;
  if not found then
    raise exception 'there is no such task'
      using errcode = 'VC404',
            detail  = pg_catalog.format('attempt %s of task %s', p_attempt, p_task);
  end if;

  -- All attempts of the task at once: locking the current one first and the other later would not be in order.
  perform aivedio._lock_attempts(
    array(select attempt.id from aivedio.task_attempts as attempt where attempt.task_id = p_task)
  );
  v_task := aivedio._lock_task(p_tenant, p_project, p_task);

  select attempt.*
  into strict v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = p_attempt;

  if v_task.current_attempt_id = p_attempt then
    return aivedio._command_result('duplicate', v_task, false);
  end if;

  if v_attempt.status <> 'succeeded' or v_task.status in ('provider_succeeded', 'processing_media', 'ready') then
    return aivedio._command_result('refused', v_task, false);
  end if;

  -- What never reached the provider is over at once; what may have is canceled there.
  update aivedio.task_attempts as attempt
  set status       = 'canceled',
      known_status = 'canceled',
      terminal_at  = v_now,
      submit_state = 'withdrawn',
      cancel_state = null,
      next_poll_at = null,
      updated_at   = v_now
  where attempt.id = v_task.current_attempt_id
    and attempt.terminal_at is null
    and attempt.submit_state in ('due', 'application');

  update aivedio.task_attempts as attempt
  set cancel_state  = 'due',
      cancel_due_at = v_now,
      updated_at    = v_now
  where attempt.id = v_task.current_attempt_id
    and attempt.terminal_at is null;

  v_task.current_attempt_id := p_attempt;
  v_task.status := 'provider_succeeded';
  v_task.progress := null;
  v_task.progress_at := null;
  v_task.cancel_requested_at := null;
  v_task.error_code := null;
  v_task.error_message := null;
  v_task := aivedio._emit(v_task, p_attempt, 'command', v_now);

  perform aivedio._audit(
    p_who, 'adopt_attempt', p_task::text, p_reason, pg_catalog.jsonb_build_object('attempt', p_attempt)
  );
  perform aivedio._resolve_cases('stale_success', p_attempt::text, 'adopted', p_who, p_reason);

  perform aivedio._ring('aivedio_submit');
  perform aivedio._ring_outbox(array[v_task.id]);
  return aivedio._command_result('applied', v_task, true);
end;
$adopt_attempt$;

comment on function aivedio.adopt_attempt is
  'Stage 40: continue a task with the result of an old attempt, audited; verdict applied, duplicate, or refused when it has none or the task has another.';

grant execute on function aivedio.adopt_attempt to aivedio_operator;
