/*
 * Stage 40 · state · _apply_locked
 *
 * The one way in which callbacks, polls and reconciliation change a task. The caller holds the locks
 * of the attempt (_lock_attempts). Judges, and then writes in the same transaction: the event with everything
 * that hangs on it, the attempt, the ledger, and a case where the machine refuses to decide.
 *
 * An attempt keeps its own end even when it is no longer the task's current one, so that its polls stop and a
 * late result can be adopted; the task is not touched.
 *
 * An unknown word is only answered as such: alarms come last in a transaction, so the caller raises it.
 *
 * Called by   _process_callback, settle_poll, apply_observation
 * Writes      what _emit writes; aivedio.task_attempts, aivedio.observations, aivedio.reconciliation_cases
 * Locks       nothing more than the caller, then the case's row
 * Raises      VC402  there is no such attempt
 */
create or replace function aivedio._apply_locked(p_observation aivedio.provider_observation)
returns aivedio.applied
language plpgsql
volatile
set search_path = ''
as $_apply_locked$
declare
  v_now       constant timestamptz := aivedio._clock();
  v_observed  constant text := p_observation.normalized_status;
  v_task      aivedio.generation_tasks;
  v_attempt   aivedio.task_attempts;
  v_judgement aivedio.judgement;
  v_result    aivedio.applied;
begin
  select attempt.*
  into v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = p_observation.attempt_id;

  if not found then
    raise exception 'there is no such attempt'
      using errcode = 'VC402',
            detail  = pg_catalog.format('attempt %s', p_observation.attempt_id);
  end if;

  select task.*
  into strict v_task
  from aivedio.generation_tasks as task
  where task.id = v_attempt.task_id;

  v_judgement := aivedio._judge(v_task, v_attempt, p_observation);

  if v_judgement.verdict = 'applied' then
    v_task.status := v_judgement.new_status;
    v_task.error_code := null;
    v_task.error_message := null;
    if v_observed in ('queued', 'running') then
      v_task.progress := greatest(v_task.progress, p_observation.progress);
      v_task.progress_at := v_now;
    elsif v_observed = 'succeeded' then
      -- Progress counts within one stage; the media stages start anew.
      v_task.progress := null;
      v_task.progress_at := null;
    end if;
    if v_task.status = 'failed' or (v_observed = 'canceled' and v_task.cancel_requested_at is null) then
      v_task.error_code := coalesce(
        p_observation.error_code, case v_observed when 'canceled' then 'canceled_by_provider' else 'provider_failed' end
      );
      v_task.error_message := aivedio._public_error_message(v_task.error_code);
    end if;
    v_task := aivedio._emit(
      v_task, v_attempt.id, p_observation.source, p_observation.provider_occurred_at,
      case when v_judgement.progress_only then 'task.progress.changed' else 'task.status.changed' end
    );
    v_result.event_id := v_task.last_event_id;
  end if;

  perform aivedio._update_attempt(v_attempt, p_observation, v_judgement.verdict);

  if v_attempt.submit_state = 'unknown' then
    perform aivedio._resolve_cases(
      'submit_unknown', v_attempt.id::text, 'accepted', 'aivedio', 'the provider speaks of the attempt: it has it'
    );
  end if;

  if v_judgement.verdict = 'conflict' then
    perform aivedio._open_case(
      'conflict', v_attempt.id::text, v_attempt, null,
      pg_catalog.jsonb_build_object(
        'attempt_status', v_attempt.status, 'observed', v_observed,
        'source', p_observation.source, 'inbox_id', p_observation.inbox_id
      )
    );
  elsif v_judgement.discarded or (v_judgement.verdict = 'stale_attempt' and v_observed = 'succeeded') then
    perform aivedio._open_case(
      'stale_success', v_attempt.id::text, v_attempt, null,
      pg_catalog.jsonb_build_object(
        'current_attempt', v_task.current_attempt_id, 'task_status', v_task.status,
        'discarded_by_policy', coalesce(v_judgement.discarded, false),
        'source', p_observation.source, 'inbox_id', p_observation.inbox_id
      )
    );
  elsif v_observed in ('queued', 'running') and v_attempt.submit_state in ('rejected', 'withdrawn') then
    perform aivedio._open_case(
      'stale_success', v_attempt.id::text, v_attempt, null,
      pg_catalog.jsonb_build_object(
        'why', 'it runs at the provider, though we took it for over', 'observed', v_observed,
        'source', p_observation.source, 'inbox_id', p_observation.inbox_id
      )
    );
  end if;

  v_result.verdict := v_judgement.verdict;
  v_result.task_id := v_task.id;
  v_result.attempt_id := v_attempt.id;
  v_result.task_version := v_task.version;
  v_result.status := v_task.status;
  v_result.stage := v_task.stage;
  v_result.progress := v_task.progress;
  perform aivedio._record_observation(p_observation, v_attempt, v_result);
  return v_result;
end;
$_apply_locked$;

comment on function aivedio._apply_locked is
  'Stage 40: judge one observation and write what follows, under locks that the caller holds.';
