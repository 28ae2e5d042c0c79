/*
 * Stage 60 · outbox · mark_shards
 *
 * mark_published for rows of several shards in one round trip.
 *
 * Called by   relay/owner.py, as the shards' owner
 * Writes      aivedio.outbox_events
 * Locks       the rows
 * Raises      VC601  the session does not own a shard
 */
create or replace function aivedio.mark_shards(
  p_shards smallint[],
  p_ids    bigint[]
)
returns integer
language plpgsql
volatile
security definer  -- the relay marks rows without writing the table
set search_path = ''
set plan_cache_mode = force_generic_plan  -- planning costs more than the update of a small batch
as $mark_shards$
declare
  v_shard  smallint;
  v_marked integer;
begin
  foreach v_shard in array p_shards
  loop
    perform aivedio._require_shard(v_shard);
  end loop;

  update aivedio.outbox_events as pending
  set publish_status = 'published',
      published_at   = aivedio._clock(),
      next_retry_at  = null
  where pending.id = any (p_ids)
    and pending.shard = any (p_shards)
    and pending.publish_status = 'pending';

  get diagnostics v_marked = row_count;
  return v_marked;
end;
$mark_shards$;

comment on function aivedio.mark_shards is
  'Stage 60: mark rows of several owned shards that the broker acknowledged; answers how many were still pending.';

grant execute on function aivedio.mark_shards to aivedio_relay;
