/*
 * Stage 90 · operate · end_partition
 *
 * Moves a table's sequence on to the next partition, once the first row of the present one is partition_days old:
 * at a low rate a partition would otherwise last for years and could not be dropped. Left alone is one that has
 * used nine tenths of its ids: it ends by itself, and the sequence must not be set back should others draw past its
 * end meanwhile. Ids only grow, so readers and marks see nothing but a gap.
 *
 * Called by   keep_partitions; DBAs
 * Writes      the sequence, at once and for good
 * Locks       an advisory lock until commit, shared with _after_restore, which moves it too
 * Raises      VC901  not a partitioned table of ours
 */
create or replace function aivedio.end_partition(p_parent text)
returns boolean
language plpgsql
volatile
security definer  -- upkeep moves sequences without owning them
set search_path = ''
as $end_partition$
declare
  v_table   constant aivedio.partitioned_table := aivedio._partitioned(p_parent);
  v_last    bigint;
  v_present aivedio.partition_range;
  v_next    aivedio.partition_range;
  v_began   timestamptz;
begin
  perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('aivedio_after_restore'), 0);
  v_last := aivedio._last_id(p_parent);

  select range.*
  into v_present
  from aivedio._partitions(p_parent) as range
  where v_last >= range.low
    and v_last < range.high;

  select range.*
  into v_next
  from aivedio._partitions(p_parent) as range
  where range.low = v_present.high;

  if v_next.name is null or v_last - v_present.low > (v_present.high - v_present.low) / 10 * 9 then
    return false;
  end if;

  execute pg_catalog.format(
    'select event.%2$I from aivedio.%1$I as event order by event.%3$I limit 1',
    v_present.name, v_table.at_column, v_table.id_column
  )
  into v_began;

  if v_began is null
    or v_began > aivedio._clock() - pg_catalog.make_interval(days => aivedio._setting('partition_days')::integer)
  then
    return false;
  end if;

  perform pg_catalog.setval(v_table.sequence::regclass, v_next.low);
  return true;
end;
$end_partition$;

comment on function aivedio.end_partition is
  'Stage 90: let a table''s ids go on in the next partition, if the present one is old enough and not nearly full; true if they do.';

grant execute on function aivedio.end_partition to aivedio_operator;
