/*
 * Stage 00 · base · _ring
 *
 * Rings a doorbell, unless its reader is awake. A reader that drains holds the bell's lock; then
 * the try fails and the writer's commit is spared the cluster-wide lock that a NOTIFY takes.
 * Call it last: a lock taken early would keep the reader waiting for this whole transaction.
 *
 * Called by   every writer whose rows a process waits for
 * Writes      nothing
 * Locks       the bell, shared, until commit, if it could be had at once
 */
create or replace function aivedio._ring(
  p_channel text,
  p_shard   smallint default 0,
  p_payload text     default null
)
returns void
language plpgsql
volatile
set search_path = ''
as $_ring$
begin
  if pg_catalog.pg_try_advisory_xact_lock_shared(pg_catalog.hashtext(p_channel), p_shard) then
    perform pg_catalog.pg_notify(p_channel, coalesce(p_payload, p_shard::text));
  end if;
end;
$_ring$;

comment on function aivedio._ring is
  'Stage 00: notify a channel unless its reader is awake. The payload is the shard unless another is given.';
