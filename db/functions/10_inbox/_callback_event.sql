/*
 * Stage 10 · inbox · _callback_event
 *
 * The provider's own id of an event, where the profile names one: a header that the signature covers, or a path of
 * the body. Only a signed delivery has one, for anybody could claim it otherwise.
 *
 * Called by   _read_callback
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._callback_event(
  p_callback aivedio.received_callback,
  p_payload  jsonb,
  p_profile  jsonb
)
returns text
language plpgsql
immutable
set search_path = ''
as $_callback_event$
declare
  v_header constant text := pg_catalog.lower(p_profile #>> '{webhook,event_id_header}');
  v_event  constant text := coalesce(
    case
      when v_header = any (aivedio._signed_headers(p_profile -> 'webhook')) then p_callback.headers ->> v_header
    end,
    aivedio._read_id(p_payload, p_profile #>> '{webhook,event_id}')
  );
begin
  if p_callback.signed and pg_catalog.length(v_event) between 1 and 255 then
    return v_event;
  end if;
  return null;
end;
$_callback_event$;

comment on function aivedio._callback_event is
  'Stage 10: the provider''s id of a signed event, at most 255 characters, else null.';
