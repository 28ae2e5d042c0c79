/*
 * Stage 90 · operate · why_waiting
 *
 * Everything that explains why a task is where it is, in one row: the reasons in words (see _waiting_reasons), its
 * state, its current attempt with the last callback and the next poll, who holds a lease, circuit and quotas, callbacks
 * and outbox rows that wait and since when, media operations, open cases.
 *
 * Called by   operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.why_waiting(p_task uuid)
returns jsonb
language sql
stable
security definer  -- operators look without reading the tables
set search_path = ''
as $why_waiting$
  select pg_catalog.jsonb_build_object(
    'reasons', pg_catalog.to_jsonb(aivedio._waiting_reasons(task, attempt)),
    'task', pg_catalog.jsonb_build_object(
      'status', task.status, 'stage', task.stage, 'version', task.version, 'updated_at', task.updated_at,
      'cancel_requested_at', task.cancel_requested_at, 'error_code', task.error_code,
      'submitted_by', task.submitted_by, 'trace_id', task.trace_id
    ),
    'attempt', pg_catalog.jsonb_build_object(
      'no', attempt.attempt_no, 'provider', attempt.provider, 'model', attempt.model, 'status', attempt.status,
      'submit_state', attempt.submit_state, 'submit_due_at', attempt.submit_due_at,
      'submit_tries', attempt.submit_tries, 'submit_lease_until', attempt.submit_lease_until,
      'submit_leased_by', attempt.submit_leased_by, 'provider_task_id', attempt.provider_task_id,
      'last_callback_at', attempt.last_callback_at, 'last_polled_at', attempt.last_polled_at,
      'next_poll_at', attempt.next_poll_at, 'poll_lease_until', attempt.poll_lease_until,
      'poll_leased_by', attempt.leased_by, 'poll_failures', attempt.poll_failures,
      'deadline_at', attempt.deadline_at, 'cancel_state', attempt.cancel_state,
      'cancel_lease_until', attempt.cancel_lease_until, 'cancel_leased_by', attempt.cancel_leased_by
    ),
    'circuit', (
      select pg_catalog.jsonb_build_object(
        'state', circuit.state, 'reason', circuit.reason, 'retry_at', circuit.retry_at
      )
      from aivedio.provider_circuits as circuit
      where circuit.provider = attempt.provider
        and circuit.credential = attempt.credential
    ),
    'quotas', (
      select coalesce(
        pg_catalog.jsonb_agg(
          pg_catalog.jsonb_build_object(
            'level', quota.level, 'key', quota.key, 'rate', quota.rate, 'blocked_until', quota.blocked_until,
            'tokens', pg_catalog.floor(aivedio._refilled(quota, quota.burst, aivedio._clock()))
          )
          order by quota.level, quota.key
        ),
        '[]'
      )
      from aivedio._quotas_of(attempt) as quota
    ),
    -- A waiting row is not mapped yet: these are the clues that it will be mapped by.
    'callbacks_waiting', (
      select count(*)
      from aivedio.provider_callback_inbox as inbox
      where inbox.process_status in ('pending', 'retry')
        and inbox.provider = attempt.provider
        and (
          inbox.callback_token_hash = attempt.callback_token_hash
          or inbox.client_request_id = attempt.client_request_id
          or inbox.provider_task_id = attempt.provider_task_id
        )
    ),
    'outbox', (
      select pg_catalog.jsonb_build_object(
        'waiting', count(*),
        'oldest_s', extract(epoch from aivedio._clock() - min(pending.created_at))
      )
      from aivedio.outbox_events as pending
      where pending.shard = aivedio._shard(task.id)
        and pending.aggregate_id = task.id
        and pending.publish_status = 'pending'
    ),
    'operations', (
      select coalesce(
        pg_catalog.jsonb_agg(
          pg_catalog.jsonb_build_object(
            'type', operation.operation_type, 'status', operation.status, 'tries', operation.tries,
            'next_try_at', operation.next_try_at, 'lease_until', operation.lease_until,
            'leased_by', operation.leased_by, 'rescue_deadline', operation.rescue_deadline
          )
          order by operation.created_at
        ),
        '[]'
      )
      from aivedio.media_operations as operation
      where operation.task_id = task.id
    ),
    'cases', (
      select coalesce(
        pg_catalog.jsonb_agg(
          pg_catalog.jsonb_build_object('id', known.id, 'kind', known.kind, 'opened_at', known.opened_at)
          order by known.opened_at
        ),
        '[]'
      )
      from aivedio.reconciliation_cases as known
      where known.task_id = task.id
        and known.state = 'open'
    )
  )
  from aivedio.generation_tasks as task
  left join aivedio.task_attempts as attempt on attempt.id = task.current_attempt_id
  where task.id = p_task;
$why_waiting$;

comment on function aivedio.why_waiting is
  'Stage 90: why a task is where it is, in one JSON object: reasons, task, attempt, circuit, quotas, callbacks_waiting, outbox, operations, cases; null for an unknown task.';

grant execute on function aivedio.why_waiting to aivedio_operator;
