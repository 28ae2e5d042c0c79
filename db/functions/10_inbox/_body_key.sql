/*
 * Stage 10 · inbox · _body_key
 *
 * The key of a signed delivery without an event id: a hash of the job, the type and time of the event, and the body.
 * A repeat with the same body is recognised; any other body is another delivery. The prefix keeps such keys apart from
 * event ids and from hints, so that nobody who cannot sign can occupy a real event's key.
 *
 * Called by   _read_callback
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._body_key(
  p_callback aivedio.received_callback,
  p_payload  jsonb,
  p_profile  jsonb
)
returns text
language plpgsql
immutable
set search_path = ''
as $_body_key$
declare
  v_fields constant jsonb := aivedio._fields(p_profile, 'webhook');
  v_text   constant text := pg_catalog.concat_ws(
    E'\n',
    aivedio._read_id(p_payload, v_fields ->> 'provider_task_id'),
    aivedio._read_text(p_payload, v_fields ->> 'event_type'),
    aivedio._read_text(p_payload, v_fields ->> 'updated_at'),
    pg_catalog.encode(p_callback.body_hash, 'hex')
  );
begin
  return 'body:' || pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(v_text, 'UTF8')), 'hex');
end;
$_body_key$;

comment on function aivedio._body_key is
  'Stage 10: the key of a signed delivery that has no event id.';
