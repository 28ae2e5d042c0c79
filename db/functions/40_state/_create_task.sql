/*
 * Stage 40 · state · _create_task
 *
 * Creates a task with its first attempt and its first event, once for each idempotency key.
 *
 * Called by   create_task, create_external_task
 * Writes      aivedio.generation_tasks, what _own_project and _insert_attempt write; what _emit writes
 * Locks       project stream, then the new rows
 * Raises      VC404  the project belongs to another tenant
 *             VC410  the idempotency key belongs to a different request
 *             VC411  the provider has no profile
 *             VC412  the input is not a JSON object, or too large
 *             VC415  the key or the trace id is empty or too long
 *             VC416  tenant, project, user, provider or model is missing
 */
create or replace function aivedio._create_task(
  p_tenant          uuid,
  p_project         uuid,
  p_user            uuid,
  p_provider        text,
  p_model           text,
  p_input           jsonb,
  p_idempotency_key text,
  p_trace_id        text,
  p_submitted_by    text
)
returns aivedio.applied
language plpgsql
volatile
set search_path = ''
as $_create_task$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_task    aivedio.generation_tasks;
  v_known   aivedio.generation_tasks;
begin
  perform aivedio._check_words(p_idempotency_key, p_trace_id);

  if p_tenant is null or p_project is null or p_user is null or coalesce(p_provider, '') = ''
    or coalesce(pg_catalog.btrim(p_model), '') = '' or pg_catalog.length(p_model) > 500
  then
    raise exception 'a task needs a tenant, a project, a user, a provider and a model'
      using errcode = 'VC416',
            hint    = 'A model''s name has at most 500 characters.';
  end if;

  if pg_catalog.jsonb_typeof(p_input) is distinct from 'object'
    or pg_catalog.octet_length(p_input::text) > aivedio._setting('input_max_bytes')
  then
    raise exception 'input must be a JSON object within the size limit'
      using errcode = 'VC412',
            detail  = pg_catalog.format(
              'type %s, %s bytes', pg_catalog.jsonb_typeof(p_input), pg_catalog.octet_length(p_input::text)
            ),
            hint    = 'The limit is the setting input_max_bytes.';
  end if;

  perform aivedio._own_project(p_tenant, p_project);

  if p_idempotency_key is not null then
    select task.*
    into v_known
    from aivedio.generation_tasks as task
    where task.project_id = p_project
      and task.idempotency_key = p_idempotency_key;

    if found then
      if (v_known.provider, v_known.model, v_known.input, v_known.submitted_by)
        is distinct from (p_provider, p_model, p_input, p_submitted_by)
      then
        raise exception 'idempotency key belongs to a different request'
          using errcode = 'VC410',
                detail  = pg_catalog.format('task %s', v_known.id),
                hint    = 'Use a new key for a new request.';
      end if;
      return aivedio._command_result('duplicate', v_known, false);
    end if;
  end if;

  v_task.id := aivedio._uuid7();
  v_task.tenant_id := p_tenant;
  v_task.project_id := p_project;
  v_task.provider := p_provider;
  v_task.model := p_model;
  v_task.trace_id := p_trace_id;
  insert into aivedio.generation_tasks as task (
    id, tenant_id, project_id, user_id, provider, model, input, idempotency_key, trace_id, created_at, submitted_by
  )
  values (
    v_task.id, p_tenant, p_project, p_user, p_provider, p_model, p_input, p_idempotency_key, p_trace_id, v_now,
    p_submitted_by
  )
  returning task.* into v_task;

  v_task.attempt_count := 1;
  v_task.current_attempt_id := aivedio._insert_attempt(v_task, 1, p_user::text, null, null);
  v_task := aivedio._emit(v_task, v_task.current_attempt_id, 'command', v_now);

  if p_submitted_by = 'aivedio' then
    perform aivedio._ring('aivedio_submit');
  end if;
  perform aivedio._ring_outbox(array[v_task.id]);
  return aivedio._command_result('applied', v_task, true);
end;
$_create_task$;

comment on function aivedio._create_task is
  'Stage 40: create a task and its first attempt, to be submitted by aivedio or by the application.';
