-- The event and the ledger row share a statement: six in all between begin and commit.
\set n random(0, 1999)
begin;
select last_event_id as prev, nextval('aivedio.task_event_ids') as event
from aivedio.project_streams where project_id = md5('project' || :n % 200)::uuid for no key update \gset
update aivedio.generation_tasks set version = version + 1, last_event_id = :event, updated_at = now()
where id = md5('task' || :n)::uuid returning version \gset
with stored as (
  insert into aivedio.task_events (
    event_id, prev_event_id, tenant_id, project_id, task_id, attempt_id, task_version, event_type,
    public_payload, source
  )
  values (
    :event, :prev, md5('tenant')::uuid, md5('project' || :n % 200)::uuid, md5('task' || :n)::uuid,
    md5('attempt' || :n)::uuid, :version, 'task.status.changed',
    public.public_payload(md5('task' || :n)::uuid, :version, now()), 'webhook'
  )
)
insert into aivedio.observations (
  id, judged_at, received_at, tenant_id, project_id, task_id, attempt_id, provider, source, verdict, event_id
)
values (
  nextval('aivedio.observation_ids'), now(), now(), md5('tenant')::uuid, md5('project' || :n % 200)::uuid,
  md5('task' || :n)::uuid, md5('attempt' || :n)::uuid, 'replicate', 'webhook', 'applied', :event
);
insert into aivedio.outbox_events (
  id, aggregate_type, aggregate_id, aggregate_version, event_type, shard, payload
)
values (
  nextval('aivedio.outbox_ids'), 'task', md5('task' || :n)::uuid, :version, 'task.status.changed', :n & 7,
  public.message(
    :event, :prev, md5('task' || :n)::uuid, :version, md5('tenant')::uuid, md5('project' || :n % 200)::uuid,
    md5('attempt' || :n)::uuid, now()
  )
);
update aivedio.task_attempts set last_provider_at = now(), updated_at = now() where id = md5('attempt' || :n)::uuid;
update aivedio.project_streams set last_event_id = :event where project_id = md5('project' || :n % 200)::uuid;
commit;
