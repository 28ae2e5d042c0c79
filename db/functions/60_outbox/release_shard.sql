/*
 * Stage 60 · outbox · release_shard
 *
 * Gives up an outbox shard, so that another relay can own it at once.
 *
 * Called by   relay/outbox.py, on the connection that called own_shard
 * Writes      nothing
 * Locks       releases the shard's advisory lock
 */
create or replace function aivedio.release_shard(p_shard smallint)
returns boolean
language sql
volatile
security definer  -- like every public function; it needs no privilege of the owner
set search_path = ''
as $release_shard$
  select pg_catalog.pg_advisory_unlock(pg_catalog.hashtext('aivedio_outbox_owner'), p_shard);
$release_shard$;

comment on function aivedio.release_shard is
  'Stage 60: give up an outbox shard; false if the session did not own it.';

grant execute on function aivedio.release_shard to aivedio_relay;
