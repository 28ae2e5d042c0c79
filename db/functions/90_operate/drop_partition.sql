/*
 * Stage 90 · operate · drop_partition
 *
 * Drops the oldest partition whose ids are behind the sequence, whose newest row is past its retention, and that
 * nothing needs. It takes two calls, each in a transaction of its own: the first announces the floor, the second drops.
 * Needed are outbox rows that are not published yet or parked, and observations of tasks with an open case: an
 * alarm partition_kept says so.
 *
 * A writer that still holds an id of that partition, after days, keeps it locked or finds it gone: then its
 * transaction fails as a whole and is repeated by whoever made it.
 *
 * It answers nothing (none is old enough), kept (the old ones are all needed), announced (call again) or dropped
 * (call again for the next).
 *
 * Called by   keep_partitions; DBAs
 * Writes      the catalog, aivedio.retention_floors, aivedio.alarms
 * Locks       the parent, ACCESS EXCLUSIVE, waiting 100 ms at most
 * Raises      VC901  not a partitioned table of ours
 *             55P03  the parent is busy; call again
 */
create or replace function aivedio.drop_partition(p_parent text)
returns text
language plpgsql
volatile
security definer  -- upkeep drops partitions without owning the tables
set search_path = ''
set lock_timeout = '100ms'
as $drop_partition$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_table constant aivedio.partitioned_table := aivedio._partitioned(p_parent);
  v_keep  constant interval := pg_catalog.make_interval(days => aivedio._setting(v_table.retention)::integer);
  v_last  constant bigint := aivedio._last_id(p_parent);
  v_range aivedio.partition_range;
  v_floor bigint;
  v_until timestamptz;
  v_need  text;
begin
  for v_range in
    select range.*
    from aivedio._partitions(p_parent) as range
    where range.high <= v_last
    order by range.low
    limit 100
  loop
    execute pg_catalog.format(
      'select event.%2$I from aivedio.%1$I as event order by event.%3$I desc limit 1',
      v_range.name, v_table.at_column, v_table.id_column
    )
    into v_until;
    exit when v_until > v_now - v_keep;

    v_need := aivedio._partition_need(p_parent, v_range.name);
    exit when v_need is null;
    perform aivedio._raise_alarm(
      'partition_kept', v_range.name, pg_catalog.jsonb_build_object('need', v_need, 'newest', v_until)
    );
    v_range := null;
  end loop;

  if v_range.name is null or v_until > v_now - v_keep then
    return case when v_need is null then 'nothing' else 'kept' end;
  end if;

  select floors.floor
  into v_floor
  from aivedio.retention_floors as floors
  where floors.parent = p_parent;

  if coalesce(v_floor, 0) < v_range.high then
    insert into aivedio.retention_floors as floors (parent, floor, announced_at)
    values (p_parent, v_range.high, v_now)
    on conflict (parent) do update
    set floor        = excluded.floor,
        announced_at = excluded.announced_at;
    return 'announced';
  end if;

  execute pg_catalog.format('drop table aivedio.%I', v_range.name);
  return 'dropped';
end;
$drop_partition$;

comment on function aivedio.drop_partition is
  'Stage 90: announce, and at the next call drop, the oldest partition past its retention that nothing needs; answers nothing, kept, announced or dropped.';

grant execute on function aivedio.drop_partition to aivedio_operator;
