/*
 * Stage 10 · inbox · _callback_key
 *
 * The key under which a delivery is recognised when it comes again.
 *
 *   signed, with an event id that the signature covers    that id
 *   signed, without one                                   body: and a hash of task, type, time and body
 *   not signed                                            hint: and the token's hash
 *
 * The prefixes keep the kinds apart, so that nobody who cannot sign can occupy a real event's key.
 *
 * Called by   accept_callbacks
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._callback_key(
  p_callback aivedio.received_callback,
  p_payload  jsonb,
  p_profile  jsonb
)
returns text
language plpgsql
immutable
set search_path = ''
as $_callback_key$
declare
  v_event constant text := aivedio._callback_event(p_callback, p_payload, p_profile);
begin
  if not p_callback.signed then
    return aivedio._hint_key(p_callback.token_hash);
  elsif v_event is not null then
    return v_event;
  end if;

  return 'body:' || pg_catalog.encode(
    pg_catalog.sha256(
      pg_catalog.convert_to(
        pg_catalog.concat_ws(
          E'\n',
          aivedio._read_id(p_payload, p_profile #>> '{fields,provider_task_id}'),
          aivedio._read_text(p_payload, p_profile #>> '{fields,event_type}'),
          aivedio._read_text(p_payload, p_profile #>> '{fields,updated_at}'),
          pg_catalog.encode(p_callback.body_hash, 'hex')
        ),
        'UTF8'
      )
    ),
    'hex'
  );
end;
$_callback_key$;

comment on function aivedio._callback_key is
  'Stage 10: the key that makes a delivery and its repeats one row.';
