/*
 * Stage 30 · observation · _map_error
 *
 * Finds the class and the public code for a provider's error: the first rule of the profile whose
 * pattern matches the error's code or text, without regard to case. Rules are data; without one that
 * matches the default stands.
 *
 * Called by   _read_submit, _normalise
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._map_error(
  p_profile jsonb,
  p_text    text,
  p_class   text,
  p_code    text,
  out p_error_class text,
  out p_error_code  text
)
language plpgsql
immutable
set search_path = ''
as $_map_error$
declare
  v_text constant text := pg_catalog.left(p_text, 4000);
begin
  if v_text <> '' then
    select rule.value ->> 'class', rule.value ->> 'code'
    into p_error_class, p_error_code
    from pg_catalog.jsonb_array_elements(p_profile -> 'errors') with ordinality as rule (value, place)
    where v_text ~* (rule.value ->> 'match')
    order by rule.place
    limit 1;
  end if;

  p_error_class := coalesce(p_error_class, p_class);
  p_error_code := coalesce(p_error_code, p_code);
end;
$_map_error$;

comment on function aivedio._map_error is
  'Stage 30: error class and public code for a provider''s error text, by the profile''s rules, else the given default.';
