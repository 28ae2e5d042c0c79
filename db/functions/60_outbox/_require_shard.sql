/*
 * Stage 60 · outbox · _require_shard
 *
 * Refuses a session that does not own the shard: two relays that send one task's messages at once would
 * mix their order.
 *
 * Called by   read_outbox, mark_published, mark_shards, mark_unsent
 * Writes      nothing
 * Locks       nothing
 * Raises      VC601  the session does not own the shard
 */
create or replace function aivedio._require_shard(p_shard smallint)
returns void
language plpgsql
volatile
set search_path = ''
as $_require_shard$
begin
  -- The lock is re-entrant: its owner gets it once more and gives that one back.
  if not pg_catalog.pg_try_advisory_lock(pg_catalog.hashtext('aivedio_outbox_owner'), p_shard) then
    raise exception 'session does not own this outbox shard'
      using errcode = 'VC601',
            detail  = pg_catalog.format('shard %s', p_shard),
            hint    = 'Call own_shard first, on the same direct connection.';
  end if;
  perform pg_catalog.pg_advisory_unlock(pg_catalog.hashtext('aivedio_outbox_owner'), p_shard);
end;
$_require_shard$;

comment on function aivedio._require_shard is
  'Stage 60: raise VC601 while another session owns the shard.';
