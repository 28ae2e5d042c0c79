"""What always holds, whatever ran and however often: queries that find the rows that break it."""

from __future__ import annotations

from tests.py.support.sessions import Connection, rows

INVARIANTS = {
    "the version counts the events": """
        select task.id, task.version, count(event.event_id)
        from aivedio.generation_tasks as task
        left join aivedio.task_events as event on event.task_id = task.id
        group by task.id
        having task.version <> count(event.event_id)
          or task.version <> max(event.task_version)
          or task.last_event_id <> max(event.event_id)
    """,
    "each event names the project's event before it, up to the head": """
        select chained.event_id
        from (
          select event.*, lag(event.event_id, 1, 0::bigint) over (
            partition by event.project_id order by event.event_id
          ) as before
          from aivedio.task_events as event
        ) as chained
        where chained.prev_event_id <> chained.before
        union all
        select stream.last_event_id
        from aivedio.project_streams as stream
        where stream.last_event_id <> coalesce((
          select max(event.event_id)
          from aivedio.task_events as event
          where event.project_id = stream.project_id
        ), 0)
    """,
    "each event has one message, which says the same": """
        select event.event_id
        from aivedio.task_events as event
        full join aivedio.outbox_events as message
          on message.aggregate_id = event.task_id
          and message.aggregate_version = event.task_version
        where event.event_id is null
          or message.id is null
          or (message.payload ->> 'event_id')::bigint <> event.event_id
          or (message.payload ->> 'prev_event_id')::bigint <> event.prev_event_id
          or message.payload -> 'public_payload' <> event.public_payload
    """,
    "the last event is the task": """
        select task.id
        from aivedio.generation_tasks as task
        join aivedio.task_events as event on event.event_id = task.last_event_id
        where event.public_payload ->> 'status' <> task.status
          or event.public_payload ->> 'stage' <> task.stage
          or (event.public_payload ->> 'progress')::integer is distinct from task.progress
    """,
    "an end stays, but for a new attempt, an adoption or a declared correction": """
        select step.event_id
        from (
          select
            event.*,
            event.public_payload ->> 'status' as status,
            lag(event.public_payload ->> 'status') over (
              partition by event.task_id order by event.task_version
            ) as before
          from aivedio.task_events as event
        ) as step
        join aivedio.task_attempts as attempt on attempt.id = step.attempt_id
        join aivedio.providers as provider on provider.name = attempt.provider
        where step.before in ('ready', 'failed', 'canceled')
          and (
            step.before = 'ready'
            or not (
              (step.source = 'command' and step.status in ('created', 'provider_succeeded'))
              or (
                step.source in ('webhook', 'poll', 'reconcile')
                and provider.effective #>> '{fields,revision}' is not null
              )
            )
          )
    """,
    "a task is behind its provider exactly if its current attempt is over": """
        select task.id
        from aivedio.generation_tasks as task
        join aivedio.task_attempts as attempt on attempt.id = task.current_attempt_id
        where (attempt.terminal_at is not null) <> (task.status in (
          'provider_succeeded', 'processing_media', 'ready', 'failed', 'canceled'
        ))
    """,
    "a task counts its attempts, and one of them is current": """
        select task.id
        from aivedio.generation_tasks as task
        join aivedio.task_attempts as attempt on attempt.task_id = task.id
        group by task.id
        having task.attempt_count <> count(*)
          or task.attempt_count <> max(attempt.attempt_no)
          or count(*) filter (where attempt.id = task.current_attempt_id) <> 1
    """,
    "ready exactly with an asset, published by the current attempt": """
        select task.id
        from aivedio.generation_tasks as task
        where (task.status = 'ready') <> (task.asset_id is not null)
          or (task.status = 'ready' and not exists (
            select 1
            from aivedio.media_operations as operation
            where operation.attempt_id = task.current_attempt_id
              and operation.operation_type = 'publish'
              and operation.status = 'done'
          ))
    """,
    "one operation of a task goes on at a time, among those that are wanted": """
        select operation.task_id
        from aivedio.media_operations as operation
        join aivedio.generation_tasks as task on task.id = operation.task_id
        where operation.status in ('pending', 'running')
          and operation.attempt_id = task.current_attempt_id
          and task.status in ('provider_succeeded', 'processing_media')
        group by operation.task_id
        having count(*) > 1
    """,
    "no ledger is settled and refunded, or without its reserve, or of different amounts": """
        select entry.attempt_id
        from aivedio.credit_ledger as entry
        group by entry.attempt_id
        having count(*) filter (where entry.ledger_type = 'reserve') <> 1
          or count(*) > 2
          or count(distinct entry.amount) <> 1
    """,
    "a task is settled once, and only when it is ready": """
        select entry.task_id
        from aivedio.credit_ledger as entry
        join aivedio.generation_tasks as task on task.id = entry.task_id
        where entry.ledger_type = 'settle'
        group by entry.task_id, task.status
        having count(*) > 1 or task.status <> 'ready'
    """,
    "no attempt that may still end is forgotten": """
        select attempt.id, attempt.status, attempt.submit_state
        from aivedio.task_attempts as attempt
        where attempt.terminal_at is null
          and not (
            attempt.submit_state in ('due', 'sent')
            or (attempt.submit_state = 'unknown' and exists (
              select 1
              from aivedio.reconciliation_cases as known
              where known.kind = 'submit_unknown' and known.subject = attempt.id::text
            ))
            or (attempt.submit_state = 'accepted' and (
              attempt.next_poll_at is not null or attempt.provider_task_id is null
            ))
          )
    """,
    "an attempt that is over is not submitted, nor asked about but for a contradiction": """
        select attempt.id
        from aivedio.task_attempts as attempt
        where attempt.terminal_at is not null
          and (
            attempt.submit_state in ('due', 'sent')
            or (attempt.next_poll_at is not null and not exists (
              select 1
              from aivedio.reconciliation_cases as known
              where known.kind = 'conflict' and known.attempt_id = attempt.id
            ))
          )
    """,
    "no URL of a provider is kept after publication": """
        select output.attempt_id
        from aivedio.attempt_outputs as output
        join aivedio.generation_tasks as task on task.current_attempt_id = output.attempt_id
        where task.status = 'ready' and output.url is not null
    """,
}


def broken(session: Connection) -> dict[str, object]:
    """Return the invariants that do not hold, each with some of the rows that break it."""
    found = {name: rows(session, f"{query} limit 5") for name, query in INVARIANTS.items()}
    return {name: some for name, some in found.items() if some}
