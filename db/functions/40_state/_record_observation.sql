/*
 * Stage 40 · state · _record_observation
 *
 * Writes the ledger: every observation that changed something or was refused. What only repeated
 * the known, or moved progress too little, is not stored, except the first terminal repeat of each
 * source: the ledger then knows whether callback or poll was first, and by how much. A lag of months, or of
 * a day before the time it tells of, is a wrong clock's and not kept.
 *
 * Called by   _process_orphan, _apply_locked
 * Writes      aivedio.observations
 * Locks       nothing
 */
create or replace function aivedio._record_observation(
  p_observation aivedio.provider_observation,
  p_attempt     aivedio.task_attempts,
  p_result      aivedio.applied
)
returns void
language plpgsql
volatile
set search_path = ''
as $_record_observation$
declare
  v_now constant timestamptz := aivedio._clock();
  v_lag constant interval := coalesce(p_observation.received_at, v_now) - p_observation.provider_occurred_at;
begin
  if p_result.verdict = 'coalesced' then
    return;
  end if;

  -- A replaced attempt that still runs is polled to its end: only the end is news.
  if p_result.verdict = 'stale_attempt'
    and p_observation.source = 'poll'
    and p_observation.normalized_status in ('queued', 'running')
  then
    return;
  end if;

  -- p_attempt is the row before this observation: a source in its list has been stored already.
  if p_result.verdict = 'duplicate'
    and (
      p_observation.normalized_status not in ('succeeded', 'failed', 'canceled')
      or p_observation.source = any (p_attempt.terminal_seen_by)
    )
  then
    return;
  end if;

  insert into aivedio.observations (
    id, judged_at, received_at, tenant_id, project_id, task_id, attempt_id, provider, source, verdict,
    normalized_status, provider_word, stage, progress, provider_sequence, provider_occurred_at, lag,
    error_class, error_code, task_version, event_id, inbox_id, payload_hash, trace_id
  )
  values (
    pg_catalog.nextval('aivedio.observation_ids'), v_now, coalesce(p_observation.received_at, v_now),
    p_attempt.tenant_id, p_attempt.project_id, p_attempt.task_id, p_attempt.id,
    coalesce(p_observation.provider, p_attempt.provider), p_observation.source, p_result.verdict,
    p_observation.normalized_status, p_observation.provider_word, p_observation.stage, p_observation.progress,
    p_observation.provider_sequence, p_observation.provider_occurred_at,
    case when v_lag between interval '-1 day' and interval '30 days' then v_lag end,
    p_observation.error_class, p_observation.error_code, p_result.task_version, p_result.event_id,
    p_observation.inbox_id, p_observation.payload_hash, coalesce(p_observation.trace_id, p_attempt.trace_id)
  );
end;
$_record_observation$;

comment on function aivedio._record_observation is
  'Stage 40: store an observation with its verdict in the ledger, unless it only repeated what was known.';
