select last_event_id from aivedio.project_streams where project_id = md5('project' || :n % 200)::uuid for no key update;
update aivedio.generation_tasks
set version = version + 1, last_event_id = nextval('aivedio.task_event_ids'), updated_at = now()
where id = md5('task' || :n)::uuid;
with stored as (
  insert into aivedio.task_events (
    event_id, prev_event_id, tenant_id, project_id, task_id, attempt_id, task_version, event_type, public_payload, source
  )
  select
    task.last_event_id, stream.last_event_id, task.tenant_id, task.project_id, task.id, task.current_attempt_id,
    task.version, 'task.status.changed',
    jsonb_build_object('task_id', task.id, 'task_version', task.version, 'status', 'running'), 'webhook'
  from aivedio.generation_tasks as task
  join aivedio.project_streams as stream on stream.project_id = task.project_id
  where task.id = md5('task' || :n)::uuid
  returning event_id
)
insert into aivedio.observations (
  id, judged_at, received_at, tenant_id, project_id, task_id, attempt_id, provider, source, verdict, event_id
)
select
  nextval('aivedio.observation_ids'), now(), now(), md5('tenant')::uuid, md5('project' || :n % 200)::uuid,
  md5('task' || :n)::uuid, md5('attempt' || :n)::uuid, 'replicate', 'webhook', 'applied', stored.event_id
from stored;
insert into aivedio.outbox_events (id, aggregate_type, aggregate_id, aggregate_version, event_type, shard, payload)
select
  nextval('aivedio.outbox_ids'), 'task', task.id, task.version, 'task.status.changed', :n & 7,
  jsonb_build_object('event_id', task.last_event_id, 'task_id', task.id, 'task_version', task.version)
from aivedio.generation_tasks as task
where task.id = md5('task' || :n)::uuid;
update aivedio.task_attempts set last_provider_at = now(), updated_at = now() where id = md5('attempt' || :n)::uuid;
update aivedio.project_streams
set last_event_id = (select last_event_id from aivedio.generation_tasks where id = md5('task' || :n)::uuid)
where project_id = md5('project' || :n % 200)::uuid;
