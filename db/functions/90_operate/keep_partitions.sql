/*
 * Stage 90 · operate · keep_partitions
 *
 * The next thing that a partitioned table needs: a partition ahead, the end of one that lasts too long, or the drop
 * of one past its retention. One at a call and transaction, so that a drop that finds the table busy costs no
 * partition ahead, and two changes never wait for each other's readers.
 *
 * Called by   upkeep; pg_cron
 * Writes      what create_partition, end_partition and drop_partition write
 * Locks       as they do
 * Raises      VC901  not a partitioned table of ours
 *             55P03  the table is busy; call again
 */
create or replace function aivedio.keep_partitions(p_parent text)
returns text
language plpgsql
volatile
security definer  -- upkeep keeps partitions without owning the tables
set search_path = ''
as $keep_partitions$
declare
  v_before bigint;
begin
  select count(*) into v_before from aivedio._partitions(p_parent);
  perform aivedio.create_partition(p_parent);
  if (select count(*) from aivedio._partitions(p_parent)) > v_before then
    return 'created';
  end if;

  if aivedio.end_partition(p_parent) then
    return 'ended';
  end if;

  return aivedio.drop_partition(p_parent);
end;
$keep_partitions$;

comment on function aivedio.keep_partitions is
  'Stage 90: do the next thing that a partitioned table needs; answers created, ended, announced, dropped, kept or nothing. The first four mean: call again.';

grant execute on function aivedio.keep_partitions to aivedio_operator;
