/*
 * Stage 30 · observation · _read_count
 *
 * Reads a provider's sequence or revision: a whole number that fits. Anything else counts as none, and then
 * the legal transitions alone keep the order.
 *
 * Called by   _normalise
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._read_count(
  p_payload jsonb,
  p_path    text
)
returns bigint
language plpgsql
immutable
set search_path = ''
as $_read_count$
declare
  v_number constant numeric := pg_catalog.trunc(
    aivedio._read_number(pg_catalog.jsonb_path_query_first(p_payload, p_path::jsonpath, '{}', true))
  );
begin
  return case when v_number between 0 and 9223372036854775807 then v_number::bigint end;
end;
$_read_count$;

comment on function aivedio._read_count is
  'Stage 30: a sequence or revision number at a path of a payload, null when there is none that fits.';
