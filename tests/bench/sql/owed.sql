-- %(count)s outbox rows of 500 tasks, as _emit writes them, without the tasks behind them.
insert into aivedio.outbox_events (
  id, aggregate_type, aggregate_id, aggregate_version, event_type, payload, shard
)
select
  pg_catalog.nextval('aivedio.outbox_ids'), 'task', change.task, change.version, 'task.status.changed',
  pg_catalog.jsonb_build_object(
    'event_id', change.event_id,
    'prev_event_id', change.event_id - 1,
    'event_type', 'task.status.changed',
    'aggregate_id', change.task,
    'aggregate_version', change.version,
    'tenant_id', change.task,
    'project_id', change.task,
    'user_id', change.task,
    'attempt_id', change.task,
    'status', (array['queued', 'running', 'provider_succeeded', 'ready'])[1 + change.number %% 4],
    'stage', 'running',
    'progress', change.number %% 100,
    'occurred_at', pg_catalog.now(),
    'trace_id', 'trace-' || change.number,
    'public_payload', pg_catalog.jsonb_build_object(
      'task_id', change.task, 'task_version', change.version, 'status', 'running', 'stage', 'running',
      'progress', 10, 'asset_id', null, 'attempt_no', 1, 'cancel_requested', false,
      'updated_at', '2026-06-24T03:10:00.000000Z', 'error', null
    )
  ),
  aivedio._shard(change.task)
from (
  select
    n as number,
    pg_catalog.nextval('aivedio.task_event_ids') as event_id,
    pg_catalog.md5(%(round)s || (n %% 500)::text)::uuid as task,
    1 + n / 500 as version
  from pg_catalog.generate_series(1, %(count)s) as n
) as change
