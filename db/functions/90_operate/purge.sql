/*
 * Stage 90 · operate · purge
 *
 * Empties what has served its time, a bounded batch a call: payloads of processed callbacks, and much later their
 * rows, for a provider may repeat them; URLs of outputs that expired; one-time tokens, revocations, who watched
 * which project, and what consumers remember of events that are no longer kept.
 *
 * Called by   upkeep
 * Writes      aivedio.provider_callback_inbox, aivedio.attempt_outputs, aivedio.one_time_tokens,
 *             aivedio.access_revocations, aivedio.project_watchers, aivedio.consumer_dedup
 * Locks       the rows it changes, with skip locked
 */
create or replace function aivedio.purge(p_limit integer default 1000)
returns integer
language plpgsql
volatile
security definer  -- upkeep purges without writing the tables
set search_path = ''
as $purge$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_days  constant interval := pg_catalog.make_interval(days => aivedio._setting('retention_days_payload')::integer);
  v_events constant interval := pg_catalog.make_interval(days => aivedio._setting('retention_days_events')::integer);
  v_count integer;
  v_total integer := 0;
begin
  with old as materialized (
    select inbox.id
    from aivedio.provider_callback_inbox as inbox
    where inbox.payload is not null
      and inbox.processed_at < v_now - v_days
    order by inbox.processed_at
    limit p_limit
    for no key update skip locked
  )
  update aivedio.provider_callback_inbox as inbox
  set payload = null
  from old
  where inbox.id = old.id;
  get diagnostics v_count = row_count;
  v_total := v_total + v_count;

  with old as materialized (
    select output.attempt_id, output.ordinal
    from aivedio.attempt_outputs as output
    where output.url is not null
      and output.expires_at < v_now - interval '1 day'
    limit p_limit
    for no key update skip locked
  )
  update aivedio.attempt_outputs as output
  set url       = null,
      purged_at = v_now
  from old
  where output.attempt_id = old.attempt_id
    and output.ordinal = old.ordinal;
  get diagnostics v_count = row_count;
  v_total := v_total + v_count;

  with old as materialized (
    select token.token_hash
    from aivedio.one_time_tokens as token
    where token.expires_at < v_now - interval '1 hour'
    limit p_limit
    for no key update skip locked
  )
  delete from aivedio.one_time_tokens as token
  using old
  where token.token_hash = old.token_hash;
  get diagnostics v_count = row_count;
  v_total := v_total + v_count;

  delete from aivedio.access_revocations as revocation
  where revocation.until < v_now;
  get diagnostics v_count = row_count;
  v_total := v_total + v_count;

  delete from aivedio.project_watchers as watcher
  where watcher.until < v_now - interval '1 day';
  get diagnostics v_count = row_count;
  v_total := v_total + v_count;

  with old as materialized (
    select dedup.consumer, dedup.event_id
    from aivedio.consumer_dedup as dedup
    where dedup.handled_at < v_now - v_events
    limit p_limit
    for no key update skip locked
  )
  delete from aivedio.consumer_dedup as dedup
  using old
  where dedup.consumer = old.consumer
    and dedup.event_id = old.event_id;
  get diagnostics v_count = row_count;
  return v_total + v_count + aivedio._purge_callbacks(p_limit);
end;
$purge$;

comment on function aivedio.purge is
  'Stage 90: empty or delete one bounded batch of whatever is past its time; answers how many rows.';

grant execute on function aivedio.purge to aivedio_operator;
