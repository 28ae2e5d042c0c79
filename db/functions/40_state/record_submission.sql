/*
 * Stage 40 · state · record_submission
 *
 * Tells under which id a provider holds an attempt. For applications that submit by themselves, and for
 * operators who have found out what became of a submission without an answer; its case is then resolved. Of an attempt
 * that was given up, or canceled before, only the id is kept, and a case opened, for it runs and costs.
 *
 * An application that submits by itself makes its tasks with create_external_task: those of create_task are
 * submitted by aivedio, perhaps at this moment.
 *
 * Called by   applications; operators
 * Writes      aivedio.task_attempts, aivedio.reconciliation_cases, aivedio.operator_actions; what _emit writes
 * Locks       project stream → task → attempt → case
 * Raises      VC404  there is no such task in this project of this tenant
 *             VC413  no reason is given
 *             VC414  the provider's id is empty or longer than 300 characters
 */
create or replace function aivedio.record_submission(
  p_tenant           uuid,
  p_project          uuid,
  p_task             uuid,
  p_provider_task_id text,
  p_who              text,
  p_reason           text
)
returns aivedio.applied
language plpgsql
volatile
security definer  -- applications record submissions without writing tables
set search_path = ''
as $record_submission$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_task    aivedio.generation_tasks;
  v_attempt aivedio.task_attempts;
  v_result  aivedio.applied;
begin
  perform aivedio._require_reason(p_reason);

  if coalesce(pg_catalog.btrim(p_provider_task_id), '') = '' or pg_catalog.length(p_provider_task_id) > 300 then
    raise exception 'provider task id is missing or too long'
      using errcode = 'VC414',
            hint    = 'Send the id that the provider answered, at most 300 characters.';
  end if;

  v_task := aivedio._lock_task(p_tenant, p_project, p_task);

  select attempt.*
  into strict v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = v_task.current_attempt_id;

  if v_attempt.provider_task_id is not null then
    return aivedio._command_result(
      case when v_attempt.provider_task_id = p_provider_task_id then 'duplicate' else 'refused' end, v_task, false
    );
  end if;

  -- Its answer is on its way, or the provider itself has said no.
  if v_attempt.submit_state = 'sent'
    or (v_attempt.submit_state = 'rejected' and v_attempt.error_class is distinct from 'given_up')
  then
    return aivedio._command_result('refused', v_task, false);
  end if;

  if v_attempt.status = 'created' then
    -- Nobody else may submit it from here on.
    v_task.status := 'submitting';
    v_task := aivedio._emit(v_task, v_attempt.id, 'command', v_now);
    v_attempt.status := 'submitting';
  end if;

  v_result := aivedio._accept_submit(v_attempt, aivedio._profile(v_attempt.provider), p_provider_task_id);
  perform aivedio._audit(
    p_who, 'record_submission', p_task::text, p_reason,
    pg_catalog.jsonb_build_object(
      'attempt', v_attempt.id, 'provider_task_id', p_provider_task_id, 'verdict', v_result.verdict
    )
  );

  perform aivedio._ring('aivedio_poll');
  perform aivedio._ring_outbox(array[v_task.id]);
  return v_result;
end;
$record_submission$;

comment on function aivedio.record_submission is
  'Stage 40: record the provider''s id of a task''s current attempt, audited; verdict applied, duplicate, refused, conflict when another attempt holds the id, or after_terminal when the attempt was given up or canceled before.';

grant execute on function aivedio.record_submission to aivedio_app, aivedio_operator;
