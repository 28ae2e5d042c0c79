/*
 * Stage 30 · observation · _read_number
 *
 * Reads a number that may come as a number or as a string ("39.000000", "42%"). Whatever is no plain
 * decimal of a sane size is no number.
 *
 * Called by   _read_count, _read_progress
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._read_number(p_value jsonb)
returns numeric
language plpgsql
immutable
set search_path = ''
as $_read_number$
begin
  return case
    when pg_catalog.left(p_value #>> '{}', 64) ~ '^ *[+-]?\d{1,20}(\.\d{1,40})? *%? *$'
    then pg_catalog.rtrim(p_value #>> '{}', ' %')::numeric
  end;
end;
$_read_number$;

comment on function aivedio._read_number is
  'Stage 30: a decimal number, also one written as a string or a percentage; null for anything else.';
