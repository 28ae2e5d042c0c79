/*
 * Stage 30 · observation · _read_id
 *
 * Reads an identifier. A string or a number of a sane length is one; everything else is none, so that
 * a provider's odd body becomes an orphan and never an oversized key.
 *
 * Called by   _body_key, _callback_event, _read_callback, _read_submit, _normalise
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._read_id(
  p_payload jsonb,
  p_path    text
)
returns text
language plpgsql
immutable
set search_path = ''
as $_read_id$
declare
  v_value constant jsonb := pg_catalog.jsonb_path_query_first(p_payload, p_path::jsonpath, '{}', true);
  v_id    constant text := v_value #>> '{}';
begin
  if pg_catalog.jsonb_typeof(v_value) in ('string', 'number') and pg_catalog.length(v_id) between 1 and 255 then
    return v_id;
  end if;
  return null;
end;
$_read_id$;

comment on function aivedio._read_id is
  'Stage 30: an identifier of at most 255 characters at a path of a payload, else null.';
