-- Makers of rows with readable defaults, in schema fixture. They insert straight into the tables, so
-- a test can begin in any state, also in one that takes hours to reach. Names stand for ids:
-- fixture.id('task') is the same UUID everywhere.
create schema if not exists fixture;
grant usage on schema fixture to public;

create or replace function fixture.id(p_name text)
returns uuid
language sql
immutable
as $id$
  select pg_catalog.md5('fixture:' || p_name)::uuid;
$id$;

create or replace function fixture.project(p_name text default 'project', p_tenant text default 'tenant')
returns uuid
language sql
as $project$
  insert into aivedio.project_streams (project_id, tenant_id)
  values (fixture.id(p_name), fixture.id(p_tenant))
  on conflict do nothing;
  select fixture.id(p_name);
$project$;

create or replace function fixture.member(
  p_user    text default 'user',
  p_project text default 'project',
  p_tenant  text default 'tenant',
  p_role    text default 'member'
)
returns uuid
language sql
as $member$
  insert into aivedio.project_members (project_id, user_id, tenant_id, role)
  values (fixture.id(p_project), fixture.id(p_user), fixture.id(p_tenant), p_role)
  on conflict do nothing;
  select fixture.id(p_user);
$member$;

-- A task without an attempt and without events: version counts what would have happened before.
create or replace function fixture.task(
  p_name                text    default 'task',
  p_status              text    default 'created',
  p_stage               text    default null,
  p_progress            integer default null,
  p_project             text    default 'project',
  p_tenant              text    default 'tenant',
  p_user                text    default 'user',
  p_version             bigint  default 1,
  p_provider            text    default 'replicate',
  p_model               text    default 'lumen/video-1',
  p_input               jsonb   default '{"prompt": "a lighthouse at dawn"}',
  p_cancel_requested_at timestamptz default null,
  p_error_code          text    default null,
  p_asset_id            text    default null,
  p_idempotency_key     text    default null
)
returns uuid
language plpgsql
as $task$
declare
  v_now constant timestamptz := aivedio._clock();
begin
  perform fixture.project(p_project, p_tenant);
  insert into aivedio.generation_tasks (
    id, tenant_id, project_id, user_id, status, stage, progress, version, provider, model, input,
    created_at, updated_at, progress_at, terminal_at, cancel_requested_at, error_code, asset_id, idempotency_key,
    trace_id
  )
  values (
    fixture.id(p_name), fixture.id(p_tenant), fixture.id(p_project), fixture.id(p_user), p_status,
    coalesce(p_stage, case p_status when 'processing_media' then 'backhauling' else p_status end),
    p_progress, p_version, p_provider, p_model, p_input, v_now, v_now,
    case when p_progress is not null then v_now end,
    case when p_status in ('ready', 'failed', 'canceled') then v_now end,
    coalesce(p_cancel_requested_at, case p_status when 'cancel_requested' then v_now end),
    coalesce(p_error_code, case p_status when 'failed' then 'provider_failed' end),
    coalesce(p_asset_id, case p_status when 'ready' then 'ast_' || pg_catalog.regexp_replace(p_name, '[^A-Za-z0-9]', '_', 'g') end),
    p_idempotency_key,
    'trace-' || p_name
  );
  return fixture.id(p_name);
end;
$task$;

-- An attempt of a task, the task's current one unless p_current says no.
create or replace function fixture.attempt(
  p_task             text    default 'task',
  p_name             text    default 'attempt',
  p_status           text    default 'submitted',
  p_known_status     text    default null,
  p_submit_state     text    default null,
  p_provider_task_id text    default 'provider-task',
  p_progress         integer default null,
  p_sequence         bigint  default null,
  p_revision         bigint  default null,
  p_token            text    default null,
  p_next_poll_at     timestamptz default null,
  p_deadline_at      timestamptz default null,
  p_current          boolean default true
)
returns uuid
language plpgsql
as $attempt$
declare
  v_now    constant timestamptz := aivedio._clock();
  v_asked  constant boolean := p_status not in ('created', 'submitting', 'submit_unknown');
  v_known  constant text := coalesce(p_known_status, case p_status when 'unknown' then 'running' else p_status end);
  v_number integer;
begin
  select task.attempt_count + 1
  into strict v_number
  from aivedio.generation_tasks as task
  where task.id = fixture.id(p_task);

  insert into aivedio.task_attempts (
    id, task_id, attempt_no, provider, model, client_request_id, provider_task_id, status, known_status,
    last_provider_seq, provider_revision, tenant_id, project_id, progress, progress_at, callback_token_hash,
    next_poll_at, deadline_at, submit_state, submitted_at, terminal_at, created_at, updated_at, trace_id
  )
  select
    fixture.id(p_name), task.id, v_number, task.provider, task.model, 'request-' || p_name,
    case when v_asked then p_provider_task_id end, p_status, v_known,
    p_sequence, p_revision, task.tenant_id, task.project_id, p_progress,
    case when p_progress is not null then v_now end,
    case when p_token is not null then pg_catalog.sha256(pg_catalog.convert_to(p_token, 'UTF8')) end,
    p_next_poll_at, p_deadline_at,
    coalesce(p_submit_state, case p_status
      when 'created' then 'due'
      when 'submitting' then 'sent'
      when 'submit_unknown' then 'unknown'
      else 'accepted'
    end),
    case when v_asked then v_now end,
    case when p_status in ('succeeded', 'failed', 'canceled') then v_now end,
    v_now, v_now, task.trace_id
  from aivedio.generation_tasks as task
  where task.id = fixture.id(p_task);

  update aivedio.generation_tasks as task
  set attempt_count      = v_number,
      current_attempt_id = case when p_current then fixture.id(p_name) else task.current_attempt_id end
  where task.id = fixture.id(p_task);
  return fixture.id(p_name);
end;
$attempt$;

-- A task with its one attempt in the state that belongs to it; answers the attempt.
create or replace function fixture.job(
  p_name           text default 'task',
  p_status         text default 'submitted',
  p_project        text default 'project',
  p_tenant         text default 'tenant',
  p_attempt_status text default null
)
returns uuid
language plpgsql
as $job$
begin
  perform fixture.task(p_name => p_name, p_status => p_status, p_project => p_project, p_tenant => p_tenant);
  return fixture.attempt(
    p_task => p_name,
    p_name => 'attempt of ' || p_name,
    p_provider_task_id => 'provider-' || p_name,
    p_status => coalesce(p_attempt_status, case p_status
      when 'provider_status_unknown' then 'unknown'
      when 'cancel_requested' then 'running'
      when 'provider_succeeded' then 'succeeded'
      when 'processing_media' then 'succeeded'
      when 'ready' then 'succeeded'
      else p_status
    end)
  );
end;
$job$;

create or replace function fixture.observation(
  p_attempt  uuid,
  p_status   text,
  p_source   text    default 'webhook',
  p_progress integer default null,
  p_sequence bigint  default null,
  p_revision bigint  default null,
  p_word     text    default null,
  p_error_code text  default null,
  p_outputs  jsonb   default null
)
returns aivedio.provider_observation
language plpgsql
as $observation$
declare
  v_observation aivedio.provider_observation;
begin
  v_observation.provider := 'replicate';
  v_observation.attempt_id := p_attempt;
  v_observation.normalized_status := p_status;
  v_observation.provider_word := coalesce(p_word, p_status);
  v_observation.source := p_source;
  v_observation.progress := p_progress;
  v_observation.provider_sequence := p_sequence;
  v_observation.provider_revision := p_revision;
  v_observation.error_code := p_error_code;
  v_observation.output_refs := p_outputs;
  v_observation.received_at := aivedio._clock();
  return v_observation;
end;
$observation$;

-- A verified delivery about a job, in the shape of Replicate's webhooks.
create or replace function fixture.delivery(
  p_event   text,
  p_name    text    default 'task',
  p_status  text    default 'processing',
  p_ordinal integer default 1
)
returns aivedio.received_callback
language plpgsql
as $delivery$
declare
  v_body     constant text := pg_catalog.jsonb_build_object(
    'id', 'provider-' || p_name,
    'status', p_status,
    'created_at', '2026-06-24T03:09:00.000Z',
    'output', case p_status when 'succeeded' then '["https://replicate.delivery/out.mp4"]'::jsonb end,
    'error', case p_status when 'failed' then 'CUDA out of memory' end,
    'logs', ''
  )::text;
  v_callback aivedio.received_callback;
begin
  v_callback.ordinal := p_ordinal;
  v_callback.provider := 'replicate';
  v_callback.headers := pg_catalog.jsonb_build_object('webhook-id', p_event, 'webhook-timestamp', '1782270600');
  v_callback.body := v_body;
  v_callback.body_hash := pg_catalog.sha256(pg_catalog.convert_to(v_body, 'UTF8'));
  v_callback.signature_key_version := 'current';
  v_callback.signed := true;
  v_callback.trace_id := 'trace-' || p_event;
  return v_callback;
end;
$delivery$;

-- A committed event of a task without going through the state machine: ids are the caller's.
create or replace function fixture.event(
  p_event_id      bigint,
  p_prev_event_id bigint,
  p_task          text   default 'task',
  p_version       bigint default 1,
  p_type          text   default 'task.status.changed',
  p_payload       jsonb  default '{}'
)
returns bigint
language sql
as $event$
  insert into aivedio.task_events (
    event_id, prev_event_id, tenant_id, project_id, task_id, attempt_id, task_version, event_type,
    public_payload, source, created_at
  )
  select
    p_event_id, p_prev_event_id, task.tenant_id, task.project_id, task.id, task.current_attempt_id, p_version,
    p_type, p_payload, 'webhook', aivedio._clock()
  from aivedio.generation_tasks as task
  where task.id = fixture.id(p_task);
  update aivedio.project_streams as stream
  set last_event_id = greatest(stream.last_event_id, p_event_id)
  from aivedio.generation_tasks as task
  where task.id = fixture.id(p_task)
    and stream.project_id = task.project_id;
  select p_event_id;
$event$;

grant execute on all functions in schema fixture to public;
