/*
 * Stage 10 · inbox · _body_problem
 *
 * Says why a signed body cannot be used: not_json when it did not parse, not_object when it is something
 * else, missing_field when a value is absent that the profile requires. Null when it can.
 *
 * Called by   _read_callback
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._body_problem(
  p_payload jsonb,
  p_profile jsonb
)
returns text
language plpgsql
immutable
set search_path = ''
as $_body_problem$
begin
  if p_payload is null then
    return 'not_json';
  elsif pg_catalog.jsonb_typeof(p_payload) <> 'object' then
    return 'not_object';
  elsif exists (
    select 1
    from pg_catalog.jsonb_array_elements_text(p_profile #> '{webhook,required}') as required (path)
    where aivedio._read_text(p_payload, required.path) is null
  ) then
    return 'missing_field';
  end if;
  return null;
end;
$_body_problem$;

comment on function aivedio._body_problem is
  'Stage 10: why a callback''s payload cannot be used, null when it can.';
