/*
 * Stage 10 · inbox · _redact
 *
 * Blanks the parts of a payload that paths name. Of a path only its leading member names count: what
 * "$.data.videos[*].url" redacts is data.videos as a whole.
 *
 * Called by   _read_callback, _finish_callbacks, _read_poll, settle_poll
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
  v_members text[];
begin
  for v_place in 0 .. coalesce(pg_catalog.jsonb_array_length(p_paths), 0) - 1 loop
    v_members := pg_catalog.string_to_array(pg_catalog.substring(p_paths ->> v_place, '^\$\.(\w+(?:\.\w+)*)'), '.');
    if v_payload #> v_members is not null and v_payload #> v_members <> 'null' then
      v_payload := pg_catalog.jsonb_set(v_payload, v_members, '"[redacted]"', false);
    end if;
  end loop;

  return v_payload;
end;
$_redact$;

comment on function aivedio._redact is
  'Stage 10: a payload with the members blanked that paths lead to.';
