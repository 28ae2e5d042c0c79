/*
 * Stage 40 · state · start_attempt
 *
 * Submits a task again, as a new attempt: the only way in which anything is generated twice, so it is
 * explicit, has a reason and an actor, and is audited. Allowed once the attempt before it has failed,
 * was canceled, is unknown, or is overdue. The old attempt is followed to its end; what it may still
 * produce goes to a case, never to the task. Idempotent by key.
 *
 * Called by   edge/gateway/app.py (retry); operators
 * Writes      aivedio.task_attempts, aivedio.operator_actions; what _emit writes
 * Locks       project stream → task → attempt
 * Raises      VC404  there is no such task in this project of this tenant
 *             VC413  no reason is given
 *             VC415  the key or the trace id is empty or too long
 */
create or replace function aivedio.start_attempt(
  p_tenant   uuid,
  p_project  uuid,
  p_task     uuid,
  p_who      text,
  p_reason   text,
  p_key      text default null,
  p_trace_id text default null
)
returns aivedio.applied
language plpgsql
volatile
security definer  -- operators and applications retry without writing tables
set search_path = ''
as $start_attempt$
declare
  v_now      constant timestamptz := aivedio._clock();
  v_task     aivedio.generation_tasks;
  v_deadline timestamptz;
begin
  perform aivedio._require_reason(p_reason);
  perform aivedio._check_words(p_key, p_trace_id);

  v_task := aivedio._lock_task(p_tenant, p_project, p_task);

  perform 1
  from aivedio.task_attempts as attempt
  where attempt.task_id = p_task
    and attempt.start_key = p_key;
  if found then
    return aivedio._command_result('duplicate', v_task, false);
  end if;

  select attempt.deadline_at
  into strict v_deadline
  from aivedio.task_attempts as attempt
  where attempt.id = v_task.current_attempt_id;

  if v_task.status not in ('failed', 'canceled', 'provider_status_unknown')
    and not (
      coalesce(v_deadline < v_now, false)
      and v_task.status in ('submitted', 'queued', 'running', 'cancel_requested')
    )
  then
    return aivedio._command_result('refused', v_task, false);
  end if;

  v_task.attempt_count := v_task.attempt_count + 1;
  v_task.current_attempt_id := aivedio._insert_attempt(v_task, v_task.attempt_count, p_who, p_reason, p_key);
  v_task.status := 'created';
  v_task.progress := null;
  v_task.progress_at := null;
  v_task.cancel_requested_at := null;
  v_task.error_code := null;
  v_task.error_message := null;
  v_task := aivedio._emit(v_task, v_task.current_attempt_id, 'command', v_now);

  perform aivedio._audit(
    p_who, 'start_attempt', v_task.id::text, p_reason,
    pg_catalog.jsonb_build_object('attempt_no', v_task.attempt_count, 'trace_id', p_trace_id)
  );

  perform aivedio._ring('aivedio_submit');
  perform aivedio._ring_outbox(array[v_task.id]);
  return aivedio._command_result('applied', v_task, true);
end;
$start_attempt$;

comment on function aivedio.start_attempt is
  'Stage 40: submit a task again as a new attempt, audited; verdict applied, duplicate for a repeated key, or refused while the current attempt may still end well.';

grant execute on function aivedio.start_attempt to aivedio_app, aivedio_gateway, aivedio_operator;
