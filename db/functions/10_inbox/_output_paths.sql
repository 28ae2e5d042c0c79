/*
 * Stage 10 · inbox · _output_paths
 *
 * Where a profile's payloads hold output URLs, as paths for _redact.
 *
 * Called by   _finish_callbacks, _field_problems
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
  return case pg_catalog.jsonb_typeof(p_profile #> '{fields,outputs}')
    when 'string' then pg_catalog.jsonb_build_array(p_profile #> '{fields,outputs}')
    when 'array' then pg_catalog.jsonb_path_query_array(p_profile, '$.fields.outputs[*].path')
    else '[]'
  end;
end;
$_output_paths$;

comment on function aivedio._output_paths is
  'Stage 10: the paths of a profile''s outputs as a JSON array.';
