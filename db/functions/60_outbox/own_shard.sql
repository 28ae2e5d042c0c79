/*
 * Stage 60 · outbox · own_shard
 *
 * Makes the calling session the owner of an outbox shard, if no other session is. Ownership ends with
 * release_shard or with the session: a relay that dies, or is silent for longer than its
 * idle_session_timeout, loses its shards, and a session that it finds closed can mark nothing.
 *
 * Called by   relay/outbox.py, on a direct connection
 * Writes      nothing
 * Locks       the shard's advisory lock, for the session
 */
create or replace function aivedio.own_shard(p_shard smallint)
returns boolean
language sql
volatile
security definer  -- like every public function; it needs no privilege of the owner
set search_path = ''
as $own_shard$
  select pg_catalog.pg_try_advisory_lock(pg_catalog.hashtext('aivedio_outbox_owner'), p_shard);
$own_shard$;

comment on function aivedio.own_shard is
  'Stage 60: become the owner of an outbox shard, 0 to 7; false while another session is.';

grant execute on function aivedio.own_shard to aivedio_relay;
