/*
 * Stage 60 · outbox · mark_published
 *
 * Records that the broker has acknowledged these rows. A crash before this call sends them again, with
 * the same event ids.
 *
 * Called by   relay/outbox.py, as the shard's owner
 * Writes      aivedio.outbox_events
 * Locks       the rows, in id order
 * Raises      VC601  the session does not own the shard
 */
create or replace function aivedio.mark_published(
  p_shard smallint,
  p_ids   bigint[]
)
returns integer
language plpgsql
volatile
security definer  -- the relay marks rows without writing the table
set search_path = ''
set plan_cache_mode = force_generic_plan  -- planning costs more than the update of a small batch
as $mark_published$
declare
  v_marked integer;
begin
  perform aivedio._require_shard(p_shard);

  update aivedio.outbox_events as pending
  set publish_status = 'published',
      published_at   = aivedio._clock(),
      next_retry_at  = null
  where pending.id = any (p_ids)
    and pending.shard = p_shard
    and pending.publish_status = 'pending';

  get diagnostics v_marked = row_count;
  return v_marked;
end;
$mark_published$;

comment on function aivedio.mark_published is
  'Stage 60: mark rows that the broker acknowledged; answers how many were still pending.';

grant execute on function aivedio.mark_published to aivedio_relay;
