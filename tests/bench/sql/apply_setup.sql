-- Two thousand running tasks in two hundred projects.
-- Every observation of a running task applies, so that each call does all the work.
update aivedio.task_transitions
set verdict = 'applied'
where task_status = 'running' and observed = 'running';

insert into aivedio.project_streams (project_id, tenant_id)
select md5('project' || n)::uuid, md5('tenant')::uuid from generate_series(0, 199) as n;

insert into aivedio.generation_tasks (
  id, tenant_id, project_id, user_id, status, stage, provider, model, current_attempt_id, attempt_count
)
select
  md5('task' || n)::uuid, md5('tenant')::uuid, md5('project' || n % 200)::uuid, md5('user')::uuid,
  'running', 'running', 'replicate', 'm', md5('attempt' || n)::uuid, 1
from generate_series(0, 1999) as n;

insert into aivedio.task_attempts (
  id, task_id, attempt_no, provider, model, client_request_id, provider_task_id, status, known_status,
  tenant_id, project_id, submit_state
)
select
  md5('attempt' || n)::uuid, md5('task' || n)::uuid, 1, 'replicate', 'm', 'request' || n, 'job' || n,
  'running', 'running', md5('tenant')::uuid, md5('project' || n % 200)::uuid, 'accepted'
from generate_series(0, 1999) as n;

-- What the provider says, ready made: building it is not what is measured.
create table public.said as
select
  n,
  jsonb_populate_record(
    null::aivedio.provider_observation,
    jsonb_build_object(
      'provider', 'replicate', 'attempt_id', md5('attempt' || n)::uuid, 'normalized_status', 'running',
      'provider_word', 'processing', 'source', 'webhook', 'received_at', now()
    )
  ) as observation
from generate_series(0, 1999) as n;
alter table public.said add primary key (n);

-- What an event and a message carry, so that the references write as many bytes as ours does.
create function public.public_payload(p_task uuid, p_version bigint, p_now timestamptz)
returns jsonb
language sql
immutable
return jsonb_build_object(
  'task_id', p_task, 'task_version', p_version, 'status', 'running', 'stage', 'running', 'progress', null,
  'asset_id', null, 'attempt_no', 1, 'cancel_requested', false, 'updated_at', p_now, 'error', null
);
create function public.message(
  p_event bigint, p_prev bigint, p_task uuid, p_version bigint, p_tenant uuid, p_project uuid, p_attempt uuid,
  p_now timestamptz
)
returns jsonb
language sql
immutable
return jsonb_build_object(
  'event_id', p_event, 'prev_event_id', p_prev, 'event_type', 'task.status.changed', 'aggregate_id', p_task,
  'aggregate_version', p_version, 'tenant_id', p_tenant, 'project_id', p_project, 'user_id', p_tenant,
  'attempt_id', p_attempt, 'status', 'running', 'stage', 'running', 'progress', null, 'occurred_at', null,
  'trace_id', null, 'public_payload', public.public_payload(p_task, p_version, p_now)
);

create function public.bare(p_n integer)
returns void
language plpgsql
as $bare$
declare
  v_now     constant timestamptz := clock_timestamp();
  v_task    constant uuid := md5('task' || p_n)::uuid;
  v_attempt constant uuid := md5('attempt' || p_n)::uuid;
  v_project constant uuid := md5('project' || p_n % 200)::uuid;
  v_tenant  constant uuid := md5('tenant')::uuid;
  v_version bigint;
  v_event   bigint;
  v_prev    bigint;
begin
  select last_event_id into v_prev
  from aivedio.project_streams where project_id = v_project for no key update;
  v_event := nextval('aivedio.task_event_ids');
  update aivedio.generation_tasks
  set version = version + 1, last_event_id = v_event, updated_at = v_now
  where id = v_task returning version into v_version;
  insert into aivedio.task_events (
    event_id, prev_event_id, tenant_id, project_id, task_id, attempt_id, task_version, event_type,
    public_payload, source, created_at
  )
  values (
    v_event, v_prev, v_tenant, v_project, v_task, v_attempt, v_version, 'task.status.changed',
    public.public_payload(v_task, v_version, v_now), 'webhook', v_now
  );
  insert into aivedio.outbox_events (
    id, aggregate_type, aggregate_id, aggregate_version, event_type, shard, created_at, payload
  )
  values (
    nextval('aivedio.outbox_ids'), 'task', v_task, v_version, 'task.status.changed', p_n & 7, v_now,
    public.message(v_event, v_prev, v_task, v_version, v_tenant, v_project, v_attempt, v_now)
  );
  insert into aivedio.observations (
    id, judged_at, received_at, tenant_id, project_id, task_id, attempt_id, provider, source, verdict, event_id
  )
  values (
    nextval('aivedio.observation_ids'), v_now, v_now, v_tenant, v_project, v_task, v_attempt,
    'replicate', 'webhook', 'applied', v_event
  );
  update aivedio.task_attempts set last_provider_at = v_now, updated_at = v_now where id = v_attempt;
  update aivedio.project_streams set last_event_id = v_event where project_id = v_project;
end;
$bare$;
