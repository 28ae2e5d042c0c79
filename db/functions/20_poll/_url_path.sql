/*
 * Stage 20 · poll · _url_path
 *
 * Encodes a value that is itself a path, such as the model owner/name: its slashes stay, each part between them is
 * encoded, empty parts vanish. Parts of dots alone are encoded too, so that no value climbs.
 *
 * Called by   _fill_text
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._url_path(p_value text)
returns text
language plpgsql
immutable
strict
set search_path = ''
as $_url_path$
begin
  return coalesce(
    (
      select pg_catalog.string_agg(aivedio._url_part(part.value), '/' order by part.place)
      from pg_catalog.string_to_table(p_value, '/') with ordinality as part (value, place)
      where part.value <> ''
    ),
    ''
  );
end;
$_url_path$;

comment on function aivedio._url_path is
  'Stage 20: a value encoded as several parts of a URL''s path.';
