/*
 * Stage 30 · observation · _path_problems
 *
 * What is wrong with a SQL/JSON path of a profile. Null is fine where a path is optional.
 *
 * Called by   _field_problems, _place_problems, _predicate_problems, _request_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._path_problems(
  p_place    text,
  p_path     jsonb,
  p_required boolean default false
)
returns text[]
language plpgsql
immutable
set search_path = ''
as $_path_problems$
begin
  if coalesce(pg_catalog.jsonb_typeof(p_path), 'null') = 'null' then
    return case when p_required then array[p_place || ': missing'] else '{}'::text[] end;
  elsif pg_catalog.jsonb_typeof(p_path) <> 'string' then
    return array[p_place || ': a SQL/JSON path, as a string'];
  end if;

  -- The cast itself is the check.
  perform (p_path #>> '{}')::jsonpath;
  return '{}'::text[];
exception
  when syntax_error or data_exception or feature_not_supported then
    return array[p_place || ': no valid SQL/JSON path'];
end;
$_path_problems$;

comment on function aivedio._path_problems is
  'Stage 30: what is wrong with a SQL/JSON path, if anything.';
