/*
 * Stage 90 · operate · task_history
 *
 * All that is recorded of a task, as one sequence from the ledger to delivery: attempts, submissions, callbacks,
 * observations with their verdicts, polls, events, outbox rows, media operations, credits, cases, and what was done by
 * hand. Of what can be many, the newest p_limit of each kind. Words of ours and ids only: no secret, payload or URL.
 *
 * Called by   edge/console; operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.task_history(
  p_task  uuid,
  p_limit integer default 300
)
returns setof aivedio.history_entry
language sql
stable
security definer  -- operators look without reading the tables
set search_path = ''
as $task_history$
  with task as materialized (
    select known.*
    from aivedio.generation_tasks as known
    where known.id = p_task
  ),
  attempt as materialized (
    select known.*
    from aivedio.task_attempts as known
    where known.task_id = p_task
  ),
  -- Attempt by attempt, by its key: in the order of time all callbacks of everybody would be passed.
  callback as materialized (
    select known.*, attempt.attempt_no
    from attempt
    cross join lateral (
      select inbox.*
      from aivedio.provider_callback_inbox as inbox
      where inbox.attempt_id = attempt.id
      offset 0
    ) as known
    union all
    -- Not judged yet, or in vain: these are the clues that they would be mapped by. Of a backlog, the newest.
    select known.*, attempt.attempt_no
    from (
      (
        select inbox.*
        from aivedio.provider_callback_inbox as inbox
        where inbox.process_status in ('pending', 'retry')
        order by inbox.id desc
        limit 5000
      )
      union all
      (
        select inbox.*
        from aivedio.provider_callback_inbox as inbox
        where inbox.process_status = 'dead'
        order by inbox.id desc
        limit 1000
      )
    ) as known
    join attempt
      on attempt.provider = known.provider
      and (
        known.callback_token_hash = attempt.callback_token_hash
        or known.client_request_id = attempt.client_request_id
        or known.provider_task_id = attempt.provider_task_id
      )
    where known.attempt_id is null
  ),
  known_case as materialized (
    select known.*, attempt.attempt_no
    from aivedio.reconciliation_cases as known
    left join attempt on attempt.id = known.attempt_id
    where known.task_id = p_task
  ),
  event as materialized (
    select told.*
    from aivedio.task_events as told
    where told.task_id = p_task
    order by told.task_version desc
    limit p_limit
  ),
  outbox as materialized (
    select sent.*
    from aivedio.outbox_events as sent
    where sent.aggregate_id = p_task
    order by sent.aggregate_version desc
    limit p_limit
  ),
  entry (at, place, number, kind, attempt_no, what, detail) as (
    select
      task.created_at, 1, 0::bigint, 'task', null::integer, 'created',
      pg_catalog.jsonb_build_object(
        'provider', task.provider, 'model', task.model, 'submitted_by', task.submitted_by,
        'project_id', task.project_id, 'tenant_id', task.tenant_id, 'user_id', task.user_id, 'trace_id', task.trace_id
      )
    from task
    union all
    select
      attempt.created_at, 2, attempt.attempt_no, 'attempt', attempt.attempt_no, 'created',
      pg_catalog.jsonb_build_object(
        'attempt_id', attempt.id, 'provider', attempt.provider, 'model', attempt.model,
        'credential', attempt.credential, 'client_request_id', attempt.client_request_id,
        'started_by', attempt.started_by, 'reason', attempt.start_reason
      )
    from attempt
    union all
    select
      coalesce(attempt.submitted_at, attempt.terminal_at, attempt.updated_at), 3, attempt.attempt_no, 'submission',
      attempt.attempt_no, attempt.submit_state,
      pg_catalog.jsonb_build_object(
        'provider_task_id', attempt.provider_task_id, 'tries', attempt.submit_tries,
        'worker', attempt.submit_leased_by, 'due_at', attempt.submit_due_at, 'deadline_at', attempt.deadline_at
      )
    from attempt
    where attempt.submit_state <> 'due'
      or attempt.submit_tries > 0
    union all
    (
      select
        callback.received_at, 4, callback.id, 'callback', callback.attempt_no, callback.process_status,
        pg_catalog.jsonb_build_object(
          'callback', callback.id, 'verdict', callback.verdict, 'error', callback.last_error_code,
          'signed', callback.signed, 'key_version', callback.signature_key_version, 'tries', callback.retry_count,
          'occurred_at', callback.provider_occurred_at, 'processed_at', callback.processed_at
        )
      from callback
      order by callback.id desc
      limit p_limit
    )
    union all
    select
      attempt.last_callback_at, 6, attempt.attempt_no, 'callback', attempt.attempt_no, 'repeated',
      pg_catalog.jsonb_build_object('times', attempt.repeated_callbacks)
    from attempt
    where attempt.repeated_callbacks > 0
    union all
    (
      select
        -- Of what one transaction wrote, the cause comes first.
        coalesce(caused.created_at, judged.judged_at), 5, judged.id, 'observation', attempt.attempt_no, judged.verdict,
        pg_catalog.jsonb_build_object(
          'source', judged.source, 'status', judged.normalized_status, 'word', judged.provider_word,
          'stage', judged.stage, 'progress', judged.progress, 'sequence', judged.provider_sequence,
          'occurred_at', judged.provider_occurred_at, 'lag_s', extract(epoch from judged.lag),
          'error_class', judged.error_class, 'error_code', judged.error_code, 'version', judged.task_version,
          'event_id', judged.event_id, 'callback', judged.inbox_id
        )
      from aivedio.observations as judged
      left join attempt on attempt.id = judged.attempt_id
      left join event as caused on caused.event_id = judged.event_id
      where judged.task_id = p_task
      order by judged.id desc
      limit p_limit
    )
    union all
    select
      attempt.last_polled_at, 6, attempt.attempt_no, 'polls', attempt.attempt_no, 'asked',
      pg_catalog.jsonb_build_object(
        'times', attempt.poll_count, 'unchanged', attempt.unchanged_polls, 'throttled', attempt.throttled_polls,
        'malformed', attempt.malformed_polls, 'failures_now', attempt.poll_failures, 'next_at', attempt.next_poll_at
      )
    from attempt
    where attempt.last_polled_at is not null
    union all
    select
      coalesce(attempt.cancel_due_at, attempt.updated_at), 7, attempt.attempt_no, 'cancel', attempt.attempt_no,
      attempt.cancel_state, pg_catalog.jsonb_build_object('tries', attempt.cancel_tries)
    from attempt
    where attempt.cancel_state is not null
    union all
    select
      event.created_at, 8, event.event_id, 'event', attempt.attempt_no, event.public_payload ->> 'status',
      pg_catalog.jsonb_build_object(
        'event_id', event.event_id, 'prev_event_id', event.prev_event_id, 'version', event.task_version,
        'source', event.source, 'stage', event.public_payload -> 'stage',
        'progress', event.public_payload -> 'progress', 'asset_id', event.public_payload -> 'asset_id',
        'error_code', event.public_payload #> '{error,code}'
      )
    from event
    left join attempt on attempt.id = event.attempt_id
    union all
    select
      attempt.terminal_at, 9, attempt.attempt_no, 'attempt', attempt.attempt_no, attempt.status,
      pg_catalog.jsonb_build_object(
        'seen_by', attempt.terminal_seen_by, 'error_class', attempt.error_class, 'error_code', attempt.error_code
      )
    from attempt
    where attempt.terminal_at is not null
    union all
    select
      coalesce(outbox.published_at, outbox.created_at), 10, outbox.id, 'outbox', null, outbox.publish_status,
      pg_catalog.jsonb_build_object(
        'outbox', outbox.id, 'version', outbox.aggregate_version, 'shard', outbox.shard, 'tries', outbox.retry_count,
        'error', outbox.last_error, 'waited_s', extract(epoch from outbox.published_at - outbox.created_at),
        'next_try_at', outbox.next_retry_at
      )
    from outbox
    union all
    select
      moment.at, 11, 0, 'media', attempt.attempt_no, moment.what,
      pg_catalog.jsonb_build_object(
        'operation', operation.operation_type, 'progress', operation.progress, 'tries', operation.tries,
        'worker', operation.leased_by, 'error_class', operation.error_class,
        'rescue_deadline', operation.rescue_deadline
      )
    from aivedio.media_operations as operation
    left join attempt on attempt.id = operation.attempt_id
    cross join lateral (
      values
        (operation.created_at, 'opened'),
        (case when operation.status <> 'pending' or operation.tries > 0 then operation.updated_at end, operation.status)
    ) as moment (at, what)
    where operation.task_id = p_task
      and moment.at is not null
    union all
    select
      credit.created_at, 12, credit.id, 'credit', attempt.attempt_no, credit.ledger_type,
      pg_catalog.jsonb_build_object('amount', credit.amount, 'event_id', credit.event_id)
    from aivedio.credit_ledger as credit
    left join attempt on attempt.id = credit.attempt_id
    where credit.task_id = p_task
    union all
    select
      moment.at, 13, 0, 'case', known_case.attempt_no, moment.what,
      pg_catalog.jsonb_build_object(
        'case', known_case.id, 'kind', known_case.kind,
        'evidence', case moment.what when 'opened' then known_case.evidence end,
        'resolution', case moment.what when 'resolved' then known_case.resolution end,
        'by', case moment.what when 'resolved' then known_case.resolved_by end,
        'reason', case moment.what when 'resolved' then known_case.reason end
      )
    from known_case
    cross join lateral (
      values (known_case.opened_at, 'opened'), (known_case.resolved_at, 'resolved')
    ) as moment (at, what)
    where moment.at is not null
    union all
    select
      action.at, 14, action.id, 'action', null, action.action,
      pg_catalog.jsonb_build_object('by', action.actor, 'reason', action.reason, 'subject', action.subject)
    from (
      select p_task::text as id, null::text[] as actions
      union all
      select attempt.id::text, null from attempt
      union all
      select known_case.id::text, null from known_case
      union all
      select callback.id::text, array['replay_callback', 'requeue_callback'] from callback
      union all
      select outbox.id::text, array['requeue_outbox'] from outbox
    ) as subject
    cross join lateral (
      select known.*
      from aivedio.operator_actions as known
      where known.subject = subject.id
      offset 0
    ) as action
    where subject.actions is null
      or action.action = any (subject.actions)
  )
  select entry.at, entry.kind, entry.attempt_no, entry.what, pg_catalog.jsonb_strip_nulls(entry.detail)
  from entry
  order by entry.at, entry.place, entry.number;
$task_history$;

comment on function aivedio.task_history is
  'Stage 90: all that is recorded of a task in the order of time: attempts, submissions, callbacks, observations, polls, events, outbox rows, media, credits, cases, actions; nothing for an unknown task.';

grant execute on function aivedio.task_history to aivedio_operator;
