/*
 * Stage 10 · inbox · _output_paths
 *
 * Where a profile's payloads hold output URLs, answers and callbacks alike, as paths for _redact.
 *
 * Called by   _finish_callbacks
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._output_paths(p_profile jsonb)
returns jsonb
language plpgsql
immutable
set search_path = ''
as $_output_paths$
begin
  return coalesce(
    (
      select pg_catalog.jsonb_agg(coalesce(rule.value -> 'path', rule.value))
      from (values (p_profile #> '{fields,outputs}'), (p_profile #> '{webhook,fields,outputs}')) as list (value)
      -- The lax [*] unwraps a list and leaves a single path as it is.
      cross join lateral pg_catalog.jsonb_path_query(list.value, '$[*]') as rule (value)
      where pg_catalog.jsonb_typeof(rule.value) <> 'null'
    ),
    '[]'
  );
end;
$_output_paths$;

comment on function aivedio._output_paths is
  'Stage 10: the paths of a profile''s outputs as a JSON array.';
