/*
 * Stage 40 · state · _insert_attempt
 *
 * Adds the next attempt of a task, due for submission, or for the application to submit. Its client_request_id
 * exists before the provider is called, so that a callback that overtakes the provider's answer can still be mapped.
 *
 * Called by   _create_task, start_attempt
 * Writes      aivedio.task_attempts
 * Locks       nothing: the caller holds stream and task
 * Raises      VC411  the provider has no profile
 */
create or replace function aivedio._insert_attempt(
  p_task   aivedio.generation_tasks,
  p_no     integer,
  p_who    text,
  p_reason text,
  p_key    text
)
returns uuid
language plpgsql
volatile
set search_path = ''
as $_insert_attempt$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_id      constant uuid := aivedio._uuid7();
  v_profile jsonb;
begin
  select provider.effective
  into v_profile
  from aivedio.providers as provider
  where provider.name = p_task.provider;

  if not found then
    raise exception 'provider has no profile'
      using errcode = 'VC411',
            detail  = pg_catalog.format('provider %s', p_task.provider),
            hint    = 'Known providers are the rows of aivedio.providers; define_provider adds one.';
  end if;

  insert into aivedio.task_attempts (
    id, task_id, attempt_no, provider, model, client_request_id, status, known_status, created_at, updated_at,
    tenant_id, project_id, deadline_at, submit_state, start_key, start_reason, started_by, trace_id
  )
  values (
    v_id, p_task.id, p_no, p_task.provider, p_task.model, v_id::text, 'created', 'created', v_now, v_now,
    p_task.tenant_id, p_task.project_id,
    v_now + aivedio._deadline(v_profile), case p_task.submitted_by when 'application' then 'application' else 'due' end,
    p_key, p_reason, p_who, p_task.trace_id
  );
  return v_id;
end;
$_insert_attempt$;

comment on function aivedio._insert_attempt is
  'Stage 40: add an attempt that waits for submission; answers its id.';
