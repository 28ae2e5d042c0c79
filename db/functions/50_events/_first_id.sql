/*
 * Stage 50 · events · _first_id
 *
 * The first id of a partitioned table whose row was written at or after a moment, or null. Ids and moments rise
 * together but for the seconds in which transactions overlap, so the answer is looked for by halves, some 50 index
 * lookups, and moved down by the ids of the minute before it: callers filter by the moment itself.
 *
 * Called by   republish
 * Writes      nothing
 * Locks       nothing
 * Raises      VC901  p_parent is not a partitioned table of ours
 */
create or replace function aivedio._first_id(
  p_parent text,
  p_at     timestamptz
)
returns bigint
language plpgsql
stable
set search_path = ''
set plan_cache_mode = force_custom_plan  -- a generic plan locks every partition
as $_first_id$
declare
  v_table constant aivedio.partitioned_table := aivedio._partitioned(p_parent);
  v_query constant text := pg_catalog.format(
    'select event.%1$I, event.%2$I from aivedio.%3$I as event where event.%1$I >= $1 order by event.%1$I limit 1',
    v_table.id_column, v_table.at_column, p_parent
  );
  v_at    constant timestamptz := p_at - interval '1 minute';
  v_low   bigint := 0;
  v_high  bigint;
  v_found bigint;
  v_when  timestamptz;
begin
  execute pg_catalog.format('select max(event.%I) from aivedio.%I as event', v_table.id_column, p_parent)
  into v_high;

  while v_low < v_high loop
    execute v_query into v_found, v_when using v_low + (v_high - v_low) / 2;
    if v_when >= v_at then
      v_high := v_low + (v_high - v_low) / 2;
    else
      v_low := v_found + 1;
    end if;
  end loop;

  execute v_query into v_found, v_when using v_low;
  return v_found;
end;
$_first_id$;

comment on function aivedio._first_id is
  'Stage 50: an id of a partitioned table below which every row is older than a moment, by a minute at most more; null when all are.';
