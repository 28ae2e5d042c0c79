/*
 * Stage 30 · observation · _read_first
 *
 * Reads the first of several places that holds something, as text. One path stands for a list of one.
 *
 * Called by   _read_submit, _normalise
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._read_first(
  p_payload jsonb,
  p_paths   jsonb
)
returns text
language plpgsql
immutable
set search_path = ''
as $_read_first$
begin
  if pg_catalog.jsonb_typeof(p_paths) = 'array' then
    return (
      select found.value
      from pg_catalog.jsonb_array_elements_text(p_paths) with ordinality as path (value, place)
      cross join lateral aivedio._read_text(p_payload, path.value) as found (value)
      where found.value is not null
      order by path.place
      limit 1
    );
  end if;
  return aivedio._read_text(p_payload, p_paths #>> '{}');
end;
$_read_first$;

comment on function aivedio._read_first is
  'Stage 30: the text at the first path of a list that leads to one.';
