/*
 * Stage 50 · events · _last_id
 *
 * The last id that a partitioned table's sequence has handed out, 0 before the first. Not transactional: others
 * may draw the next one meanwhile.
 *
 * Called by   create_partition, end_partition, drop_partition, check_streams, checkup
 * Writes      nothing
 * Locks       nothing
 * Raises      VC901  p_parent is not a partitioned table of ours
 */
create or replace function aivedio._last_id(p_parent text)
returns bigint
language plpgsql
volatile
set search_path = ''
as $_last_id$
declare
  v_last bigint;
begin
  -- One that was set and has not been drawn from yet shows the value that it will draw first.
  execute pg_catalog.format(
    'select case when ids.is_called then ids.last_value else ids.last_value - 1 end from %s as ids',
    (aivedio._partitioned(p_parent)).sequence
  )
  into v_last;
  return v_last;
end;
$_last_id$;

comment on function aivedio._last_id is
  'Stage 50: the last id that the sequence of a partitioned table has handed out; 0 before the first.';
