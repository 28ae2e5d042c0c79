/*
 * Stage 60 · outbox · bus_groups
 *
 * The names of all consumer groups.
 *
 * Called by   aivedio topics create, as aivedio_operator
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.bus_groups()
returns setof text
language sql
stable
security definer  -- operators look without reading the table
set search_path = ''
as $bus_groups$
  select consumers.name from aivedio.consumer_groups as consumers order by consumers.name;
$bus_groups$;

comment on function aivedio.bus_groups is
  'Stage 60: the names of all consumer groups.';

grant execute on function aivedio.bus_groups to aivedio_operator;
