/*
 * Stage 30 · observation · _read_text
 *
 * Reads the first value that a profile's path finds, as text: a scalar as it is, anything else as
 * JSON. Null when there is no path, nothing is found, or the value is null or empty.
 *
 * Called by   _body_key, _body_problem, _read_first, _read_word
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._read_text(
  p_payload jsonb,
  p_path    text
)
returns text
language plpgsql
immutable
set search_path = ''
as $_read_text$
begin
  return nullif(pg_catalog.jsonb_path_query_first(p_payload, p_path::jsonpath, '{}', true) #>> '{}', '');
end;
$_read_text$;

comment on function aivedio._read_text is
  'Stage 30: the first value at a path of a payload as text; null when there is none.';
