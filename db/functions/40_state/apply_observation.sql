/*
 * Stage 40 · state · apply_observation
 *
 * Applies one normalised observation: locks, judges, writes, rings. An observation whose attempt is not
 * known is answered with verdict orphan and changes nothing.
 *
 * Called by   operators and reconciliation; callbacks and polls use its parts in batches
 * Writes      what _apply_locked writes
 * Locks       project stream → task → attempt → case → alarm
 * Raises      VC403  the observation lacks a source, or has one that is not webhook, poll or reconcile
 *             VC405  the observation holds a value that no normalised observation has
 */
create or replace function aivedio.apply_observation(p_observation aivedio.provider_observation)
returns aivedio.applied
language plpgsql
volatile
security definer  -- the state machine writes tables that no caller may touch
set search_path = ''
as $apply_observation$
declare
  v_result aivedio.applied;
begin
  if p_observation.source is null or p_observation.source not in ('webhook', 'poll', 'reconcile') then
    raise exception 'observation has no usable source'
      using errcode = 'VC403',
            detail  = pg_catalog.format('source %s', p_observation.source),
            hint    = 'Use webhook, poll or reconcile.';
  end if;

  if p_observation.normalized_status not in ('queued', 'running', 'succeeded', 'failed', 'canceled')
    or p_observation.progress not between 0 and 100
    or p_observation.error_code !~ '^[a-z][a-z0-9_]{0,62}$'
    or pg_catalog.length(p_observation.provider_task_id) not between 1 and 300
    or greatest(
      pg_catalog.length(p_observation.provider_word), pg_catalog.length(p_observation.stage),
      pg_catalog.length(p_observation.trace_id)
    ) > 300
    or not pg_catalog.isfinite(p_observation.provider_occurred_at)
    or not pg_catalog.isfinite(p_observation.received_at)
  then
    raise exception 'observation holds a value that none can have'
      using errcode = 'VC405',
            detail  = pg_catalog.format('attempt %s', p_observation.attempt_id),
            hint    = 'normalise makes observations whose values fit.';
  end if;

  if aivedio._lock_attempts(array[p_observation.attempt_id]) = 0 then
    v_result.verdict := 'orphan';
    return v_result;
  end if;

  v_result := aivedio._apply_locked(p_observation);

  if v_result.verdict = 'unknown_word' then
    perform aivedio._alarm_word(p_observation);
  end if;

  if v_result.event_id is not null then
    perform aivedio._ring('aivedio_outbox', aivedio._shard(v_result.task_id));
  end if;
  return v_result;
end;
$apply_observation$;

comment on function aivedio.apply_observation is
  'Stage 40: apply one observation of a known attempt; every outcome is a verdict, never an exception.';

grant execute on function aivedio.apply_observation to aivedio_operator;
