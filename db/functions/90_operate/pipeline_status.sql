/*
 * Stage 90 · operate · pipeline_status
 *
 * The whole path in one look: what waits in each stage and for how long, tasks that are under way, open alarms and
 * cases. It reads what is open, however much is over.
 *
 * Called by   aivedio status; edge/operate/gauges.py; operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.pipeline_status()
returns jsonb
language sql
stable
security definer  -- operators look without reading the tables
set search_path = ''
as $pipeline_status$
  select pg_catalog.jsonb_build_object(
    'at', aivedio._clock(),
    'inbox', (
      select pg_catalog.jsonb_build_object(
        'pending', count(*) filter (where inbox.process_status = 'pending'),
        'retry', count(*) filter (where inbox.process_status = 'retry'),
        'oldest_s', extract(epoch from aivedio._clock() - min(inbox.received_at))
      )
      from aivedio.provider_callback_inbox as inbox
      where inbox.process_status in ('pending', 'retry')
    ),
    'inbox_dead', (
      select count(*) from aivedio.provider_callback_inbox as inbox where inbox.process_status = 'dead'
    ),
    'submits_due', (
      select count(*) from aivedio.task_attempts as attempt where attempt.submit_state = 'due'
    ),
    'polls', (
      select pg_catalog.jsonb_build_object(
        'scheduled', count(*),
        'due', count(*) filter (where attempt.next_poll_at <= aivedio._clock())
      )
      from aivedio.task_attempts as attempt
      where attempt.next_poll_at is not null
    ),
    'callbacks', (
      select coalesce(
        pg_catalog.jsonb_object_agg(known.provider, pg_catalog.to_jsonb(known) - 'provider'), '{}'
      )
      from aivedio.callback_coverage as known
    ),
    'circuits', (
      select coalesce(
        pg_catalog.jsonb_object_agg(circuit.provider || ':' || circuit.credential, circuit.state), '{}'
      )
      from aivedio.provider_circuits as circuit
      where circuit.state <> 'closed'
    ),
    'quotas_blocked', (
      select count(*) from aivedio.poll_quotas as quota where quota.blocked_until > aivedio._clock()
    ),
    'outbox', (
      select pg_catalog.jsonb_build_object(
        'pending', count(*),
        'oldest_s', extract(epoch from aivedio._clock() - min(pending.created_at))
      )
      from aivedio.outbox_events as pending
      where pending.publish_status = 'pending'
    ),
    'outbox_parked', (
      select count(*) from aivedio.outbox_events as parked where parked.publish_status = 'parked'
    ),
    'bus', aivedio.bus_status(),
    'media', (
      select coalesce(pg_catalog.jsonb_object_agg(waiting.operation_type, waiting.count), '{}')
      from (
        select operation.operation_type, count(*)
        from aivedio.media_operations as operation
        where operation.status in ('pending', 'running')
        group by operation.operation_type
      ) as waiting
    ),
    'tasks', (
      select coalesce(pg_catalog.jsonb_object_agg(known.status, known.count), '{}')
      from (
        select task.status, count(*)
        from aivedio.generation_tasks as task
        where task.terminal_at is null
        group by task.status
      ) as known
    ),
    'alarms', (
      select coalesce(
        pg_catalog.jsonb_agg(
          pg_catalog.jsonb_build_object(
            'kind', alarm.kind, 'subject', alarm.subject, 'count', alarm.count, 'last_at', alarm.last_at
          )
          order by alarm.last_at desc
        ),
        '[]'
      )
      from aivedio.alarms as alarm
      where alarm.resolved_at is null
    ),
    'cases', (
      select coalesce(pg_catalog.jsonb_object_agg(open_case.kind, open_case.count), '{}')
      from (
        select known.kind, count(*)
        from aivedio.reconciliation_cases as known
        where known.state = 'open'
        group by known.kind
      ) as open_case
    )
  );
$pipeline_status$;

comment on function aivedio.pipeline_status is
  'Stage 90: what waits where and for how long, open alarms and cases, as one JSON object.';

grant execute on function aivedio.pipeline_status to aivedio_operator;
