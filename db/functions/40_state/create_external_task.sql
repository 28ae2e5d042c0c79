/*
 * Stage 40 · state · create_external_task
 *
 * Creates a task that the application itself submits: nobody else ever sends an attempt of it. The answer's attempt_id
 * is the client_request_id: submit with it as idempotency key or metadata, so that callbacks find the attempt, and
 * then call record_submission with the provider's id. Whoever dies in between finds the task again by the
 * idempotency key. An attempt that was never recorded becomes a case at its deadline.
 *
 * Called by   applications
 * Writes      what _create_task writes
 * Locks       project stream, then the new rows
 * Raises      VC404  the project belongs to another tenant
 *             VC410  the idempotency key belongs to a different request
 *             VC411  the provider has no profile
 *             VC412  the input is not a JSON object, or too large
 *             VC415  the key or the trace id is empty or too long
 *             VC416  tenant, project, user, provider or model is missing
 */
create or replace function aivedio.create_external_task(
  p_tenant          uuid,
  p_project         uuid,
  p_user            uuid,
  p_provider        text,
  p_model           text,
  p_input           jsonb,
  p_idempotency_key text default null,
  p_trace_id        text default null
)
returns aivedio.applied
language sql
volatile
security definer  -- applications create tasks without writing tables
set search_path = ''
as $create_external_task$
  select aivedio._create_task(
    p_tenant, p_project, p_user, p_provider, p_model, p_input, p_idempotency_key, p_trace_id, 'application'
  );
$create_external_task$;

comment on function aivedio.create_external_task is
  'Stage 40: create a task that the application submits by itself, with attempt_id as client_request_id, and then tells record_submission about; otherwise as create_task.';

grant execute on function aivedio.create_external_task to aivedio_app;
