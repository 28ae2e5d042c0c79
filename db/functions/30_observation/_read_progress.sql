/*
 * Stage 30 · observation · _read_progress
 *
 * Reads progress as whole percents, 0 to 100. The profile says where it is and on which scale; below zero
 * means "not known" (Mux says -1), above the scale is cut. Text, such as a log, is searched
 * by the profile's pattern for its last match; where no path suffices the profile names a function of the payload.
 *
 * Called by   _normalise
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._read_progress(
  p_payload jsonb,
  p_profile jsonb
)
returns smallint
language plpgsql
stable
set search_path = ''
as $_read_progress$
declare
  v_path     constant text := p_profile #>> '{fields,progress}';
  v_function constant text := p_profile #>> '{functions,progress}';
  v_pattern  constant text := p_profile #>> '{fields,progress_match}';
  v_found    constant jsonb := pg_catalog.jsonb_path_query_first(p_payload, v_path::jsonpath, '{}', true);
  v_scale    constant numeric := coalesce((p_profile #>> '{fields,progress_scale}')::numeric, 100);
  v_value    numeric;
begin
  if v_pattern is not null then
    -- The greedy prefix makes it the last match.
    v_value := aivedio._read_number(
      pg_catalog.to_jsonb(pg_catalog.substring(pg_catalog.right(v_found #>> '{}', 4000), '.*' || v_pattern))
    );
  elsif v_path is not null then
    v_value := aivedio._read_number(v_found);
  elsif v_function is not null then
    -- The name was checked by define_provider: a stable function of ours that takes the payload.
    execute pg_catalog.format('select %s($1)', v_function::regproc) into v_value using p_payload;
  end if;

  -- least() ignores nulls: nothing must not become everything.
  if v_value is null or v_value < 0 then
    return null;
  end if;
  return pg_catalog.floor(least(v_value, v_scale) * 100 / v_scale)::smallint;
end;
$_read_progress$;

comment on function aivedio._read_progress is
  'Stage 30: the progress in a payload, 0 to 100, null when it holds none.';
