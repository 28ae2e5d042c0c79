/*
 * Stage 30 · observation · _predicate_problems
 *
 * What is wrong with a SQL/JSON path of a profile that must be true or false, such as $.error == "busy". A path that
 * finds a value instead ($.error) would never hold.
 *
 * Called by   _one_request_problems, _place_problems, _request_problems, _rule_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._predicate_problems(
  p_place text,
  p_path  jsonb
)
returns text[]
language plpgsql
immutable
set search_path = ''
as $_predicate_problems$
declare
  v_problems constant text[] := aivedio._path_problems(p_place, p_path, true);
begin
  if v_problems = '{}' then
    -- Running it is the check: on an empty object a predicate is false or unknown, and a path finds nothing.
    perform pg_catalog.jsonb_path_match('{}', (p_path #>> '{}')::jsonpath);
  end if;
  return v_problems;
exception
  when singleton_sql_json_item_required then
    return array[p_place || ': a predicate, true or false, such as $.error == "busy"'];
  when data_exception then
    return '{}'::text[];
end;
$_predicate_problems$;

comment on function aivedio._predicate_problems is
  'Stage 30: what is wrong with a SQL/JSON predicate, if anything.';
