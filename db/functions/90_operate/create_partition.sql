/*
 * Stage 90 · operate · create_partition
 *
 * Makes the next missing partition of one parent, if fewer than the setting partitions_ahead lie empty ahead of
 * its sequence. One partition per call and transaction: two in one could deadlock with writers. Answers
 * how many are ahead now; fewer than two raise an alarm.
 *
 * Called by   keep_partitions; DBAs
 * Writes      the catalog, aivedio.alarms
 * Locks       the parent, SHARE UPDATE EXCLUSIVE, waiting 100 ms at most
 * Raises      VC901  not a partitioned table of ours
 *             55P03  the parent is busy; call again
 */
create or replace function aivedio.create_partition(p_parent text)
returns integer
language plpgsql
volatile
security definer  -- upkeep makes partitions without owning the tables
set search_path = ''
set lock_timeout = '100ms'
as $create_partition$
declare
  v_size     constant bigint := aivedio._setting('partition_ids');
  v_last     constant bigint := aivedio._last_id(p_parent);
  v_current  bigint;
  v_ahead    integer := 0;
begin
  v_current := v_last / v_size * v_size;

  while pg_catalog.to_regclass('aivedio.' || p_parent || '_p' || (v_current + (v_ahead + 1) * v_size)) is not null
    and v_ahead < 1000
  loop
    v_ahead := v_ahead + 1;
  end loop;

  if v_ahead < 2 then
    perform aivedio._raise_alarm(
      'partitions_low', p_parent, pg_catalog.jsonb_build_object('ahead', v_ahead, 'last_id', v_last)
    );
  end if;

  if pg_catalog.to_regclass('aivedio.' || p_parent || '_p' || v_current) is null then
    perform aivedio._create_partition(p_parent, v_current);
  elsif v_ahead < aivedio._setting('partitions_ahead') then
    perform aivedio._create_partition(p_parent, v_current + (v_ahead + 1) * v_size);
    v_ahead := v_ahead + 1;
  end if;

  return v_ahead;
end;
$create_partition$;

comment on function aivedio.create_partition is
  'Stage 90: make one missing partition ahead of a table''s sequence; answers how many are ahead.';

grant execute on function aivedio.create_partition to aivedio_operator;
