/*
 * Stage 40 · state · create_task
 *
 * Creates a task with its first attempt and its first event; aivedio submits it. With an idempotency key the same
 * request may be sent any number of times: it answers with the first task, verdict duplicate.
 *
 * Called by   edge/gateway/app.py as aivedio_app; applications
 * Writes      what _create_task writes
 * Locks       project stream, then the new rows
 * Raises      VC404  the project belongs to another tenant
 *             VC410  the idempotency key belongs to a different request
 *             VC411  the provider has no profile
 *             VC412  the input is not a JSON object, or too large
 *             VC415  the key or the trace id is empty or too long
 *             VC416  tenant, project, user, provider or model is missing
 */
create or replace function aivedio.create_task(
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
as $create_task$
  select aivedio._create_task(
    p_tenant, p_project, p_user, p_provider, p_model, p_input, p_idempotency_key, p_trace_id, 'aivedio'
  );
$create_task$;

comment on function aivedio.create_task is
  'Stage 40: create a task and its first attempt, which aivedio submits; verdict applied, or duplicate for a repeated idempotency key. An application that submits by itself calls create_external_task instead.';

grant execute on function aivedio.create_task to aivedio_app, aivedio_gateway;
