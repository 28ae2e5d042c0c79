/*
 * Stage 60 · outbox · fair_share
 *
 * Counts the calling session among the relays and answers how many of the eight shards each of them
 * may own. A relay that dies or falls silent leaves the count with its session, and the others may then
 * own more; so no shard stays without an owner, and a newcomer gets its part.
 *
 * Called by   relay/owner.py, once a second, on the connection that owns the shards
 * Writes      nothing
 * Locks       the relays' presence lock, shared, for the session
 */
create or replace function aivedio.fair_share()
returns smallint
language plpgsql
volatile
security definer  -- like every public function; it needs no privilege of the owner
set search_path = ''
as $fair_share$
declare
  v_presence constant integer := pg_catalog.hashtext('aivedio_relays');
  v_here     boolean;
  v_relays   bigint;
begin
  select coalesce(pg_catalog.bool_or(held.pid = pg_catalog.pg_backend_pid()), false), pg_catalog.count(*)
  into v_here, v_relays
  from pg_catalog.pg_locks as held
  where held.locktype = 'advisory'
    and held.database = (
      select base.oid
      from pg_catalog.pg_database as base
      where base.datname = pg_catalog.current_database()
    )
    -- pg_locks shows the first half of a two-part key as an unsigned number.
    and held.classid = (v_presence::bigint & 4294967295)::oid
    and held.objid = 0
    and held.objsubid = 2
    and held.granted;

  if not v_here then
    perform pg_catalog.pg_advisory_lock_shared(v_presence, 0);
    v_relays := v_relays + 1;
  end if;

  return pg_catalog.ceil(8.0 / v_relays);
end;
$fair_share$;

comment on function aivedio.fair_share is
  'Stage 60: how many outbox shards each of the relays alive may own; the first call counts the session in.';

grant execute on function aivedio.fair_share to aivedio_relay;
