/*
 * Stage 10 · inbox · _parse_body
 *
 * Parses a callback's body. What PostgreSQL cannot hold is null: broken JSON, but also \u0000, a lone surrogate,
 * a number without end or a nesting that is too deep, all of which other parsers accept.
 *
 * Called by   _read_callback
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._parse_body(p_body text)
returns jsonb
language plpgsql
immutable
set search_path = ''
as $_parse_body$
begin
  return p_body::jsonb;
exception
  when data_exception or program_limit_exceeded then
    return null;
end;
$_parse_body$;

comment on function aivedio._parse_body is
  'Stage 10: a callback''s body as JSON, or null when PostgreSQL cannot hold it.';
