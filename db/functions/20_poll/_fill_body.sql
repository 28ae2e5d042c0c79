/*
 * Stage 20 · poll · _fill_body
 *
 * Fills a JSON template. A string that is one placeholder becomes the value itself, with its type; where that value is
 * missing the member is left out. A string with placeholders among other text stays a string. The member "..." stands
 * for all members of the object it names that the template does not name itself: what a profile writes into a request,
 * or leaves out of it, no user's input replaces.
 *
 * Called by   _build_request
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._fill_body(
  p_template jsonb,
  p_values   jsonb
)
returns jsonb
language plpgsql
immutable
set search_path = ''
as $_fill_body$
declare
  v_text   text;
  v_spread jsonb;
begin
  case pg_catalog.jsonb_typeof(p_template)
    when 'object' then
      v_spread := aivedio._fill_body(p_template -> '...', p_values);
      return case pg_catalog.jsonb_typeof(v_spread)
        when 'object' then v_spread - array(select pg_catalog.jsonb_object_keys(p_template))
        else '{}'
      end
      || (
        select coalesce(pg_catalog.jsonb_object_agg(member.key, filled.value), '{}')
        from pg_catalog.jsonb_each(p_template) as member
        cross join lateral (select aivedio._fill_body(member.value, p_values) as value) as filled
        where member.key <> '...'
          and filled.value is not null
      );
    when 'array' then
      return (
        select coalesce(pg_catalog.jsonb_agg(filled.value order by item.place), '[]')
        from pg_catalog.jsonb_array_elements(p_template) with ordinality as item (value, place)
        cross join lateral (select aivedio._fill_body(item.value, p_values) as value) as filled
        where filled.value is not null
      );
    when 'string' then
      v_text := p_template #>> '{}';
      if v_text ~ '^\{[a-z_]+(?:\.\w+)*\}$' then
        return p_values #> pg_catalog.string_to_array(pg_catalog.btrim(v_text, '{}'), '.');
      end if;
      return pg_catalog.to_jsonb(aivedio._fill_text(v_text, p_values, false));
    else
      return p_template;
  end case;
end;
$_fill_body$;

comment on function aivedio._fill_body is
  'Stage 20: a JSON template with its placeholders filled; null when the whole of it is a missing value.';
