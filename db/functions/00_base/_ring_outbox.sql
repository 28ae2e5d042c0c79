/*
 * Stage 00 · base · _ring_outbox
 *
 * Rings the outbox bell of each shard that the given tasks belong to, in shard order.
 *
 * Called by   every public function that may have emitted an event, as its last statement
 * Writes      nothing
 * Locks       the bells, shared, until commit, those that could be had at once
 */
create or replace function aivedio._ring_outbox(p_tasks uuid[])
returns void
language plpgsql
volatile
set search_path = ''
as $_ring_outbox$
declare
  v_shard smallint;
begin
  for v_shard in
    select distinct aivedio._shard(task.id) as shard
    from pg_catalog.unnest(p_tasks) as task (id)
    order by shard
  loop
    perform aivedio._ring('aivedio_outbox', v_shard);
  end loop;
end;
$_ring_outbox$;

comment on function aivedio._ring_outbox is
  'Stage 00: ring the outbox bells of the shards of these tasks.';
