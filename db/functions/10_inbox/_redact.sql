/*
 * Stage 10 · inbox · _redact
 *
 * Blanks the parts of a payload that a profile names, and leaves the rest: paths are member names from
 * the root ("$.input", "$.data.video").
 *
 * Called by   accept_callbacks, process_inbox
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._redact(
  p_payload jsonb,
  p_paths   jsonb
)
returns jsonb
language plpgsql
immutable
set search_path = ''
as $_redact$
declare
  v_payload jsonb := p_payload;
  v_path    text;
begin
  for v_path in
    select path.value from pg_catalog.jsonb_array_elements_text(p_paths) as path
  loop
    v_payload := pg_catalog.jsonb_set(
      v_payload, pg_catalog.string_to_array(pg_catalog.substr(v_path, 3), '.'), '"[redacted]"', false
    );
  end loop;

  return v_payload;
end;
$_redact$;

comment on function aivedio._redact is
  'Stage 10: a payload with the named members blanked.';
