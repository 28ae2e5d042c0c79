/*
 * Stage 30 · observation · _read_word
 *
 * Reads the provider's word for a job's status: the value at a path, or, where a provider has no such word and only
 * the shape of its answer tells, the word of the first rule {when, word} whose predicate holds.
 *
 * Called by   _normalise
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._read_word(
  p_payload jsonb,
  p_status  jsonb
)
returns text
language plpgsql
immutable
set search_path = ''
as $_read_word$
begin
  if pg_catalog.jsonb_typeof(p_status) = 'array' then
    return (
      select rule.value ->> 'word'
      from pg_catalog.jsonb_array_elements(p_status) with ordinality as rule (value, place)
      where coalesce(pg_catalog.jsonb_path_match(p_payload, (rule.value ->> 'when')::jsonpath, '{}', true), false)
      order by rule.place
      limit 1
    );
  end if;
  return pg_catalog.left(aivedio._read_text(p_payload, p_status #>> '{}'), 100);
end;
$_read_word$;

comment on function aivedio._read_word is
  'Stage 30: the provider''s word for the status in a payload, null when there is none.';
