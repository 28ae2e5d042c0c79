/*
 * Stage 20 · poll · _fill_text
 *
 * Puts values into a template's {placeholders}, in one pass: what a value holds is never a placeholder. A dot
 * leads into an object ({input.prompt}); a missing value is empty. In a URL each value is one part of the path or
 * query, unless its name begins with a plus: {+model} is a path of its own, whose slashes stay.
 *
 * Called by   _fill_body, _build_request
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._fill_text(
  p_template text,
  p_values   jsonb,
  p_encode   boolean
)
returns text
language plpgsql
immutable
set search_path = ''
as $_fill_text$
declare
  v_parts constant text[] := pg_catalog.regexp_split_to_array(p_template, '\{\+?[a-z_]+(?:\.\w+)*\}');
  v_place integer := 1;
  v_value text;
  v_name  text;
  v_text  text := v_parts[1];
begin
  for v_name in
    select found.name[1]
    from pg_catalog.regexp_matches(p_template, '\{(\+?[a-z_]+(?:\.\w+)*)\}', 'g') as found (name)
  loop
    v_value := coalesce(p_values #>> pg_catalog.string_to_array(pg_catalog.ltrim(v_name, '+'), '.'), '');
    v_place := v_place + 1;
    v_text := v_text
      || case
        when not p_encode then v_value
        when v_name like '+%' then aivedio._url_path(v_value)
        else aivedio._url_part(v_value)
      end
      || v_parts[v_place];
  end loop;

  return v_text;
end;
$_fill_text$;

comment on function aivedio._fill_text is
  'Stage 20: a text template with its placeholders filled, URL-encoded if asked for.';
