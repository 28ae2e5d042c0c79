/*
 * Stage 10 · inbox · _read_callback
 *
 * Reads from a signed delivery what its inbox row will hold: the key that recognises a repeat, the ids that map it
 * to an attempt, and the payload, without the parts that no rule reads. One that cannot be used keeps only its
 * problem.
 *
 * Called by   accept_callbacks
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._read_callback(
  p_callback aivedio.received_callback,
  p_profile  jsonb
)
returns aivedio.callback_entry
language plpgsql
immutable
set search_path = ''
as $_read_callback$
declare
  v_payload constant jsonb := aivedio._parse_body(p_callback.body);
  v_fields  constant jsonb := aivedio._fields(p_profile, 'webhook');
  v_entry   aivedio.callback_entry;
begin
  v_entry.ordinal := p_callback.ordinal;
  v_entry.provider := p_callback.provider;
  v_entry.problem := pg_catalog.left(coalesce(p_callback.error, aivedio._body_problem(v_payload, p_profile)), 64);
  v_entry.provider_event_id := aivedio._callback_event(p_callback, v_payload, p_profile);
  v_entry.dedup_key := coalesce(v_entry.provider_event_id, aivedio._body_key(p_callback, v_payload, p_profile));
  v_entry.provider_task_id := aivedio._read_id(v_payload, v_fields ->> 'provider_task_id');
  v_entry.client_request_id := aivedio._read_id(v_payload, v_fields ->> 'client_request_id');
  v_entry.headers := coalesce(p_callback.headers, '{}');
  v_entry.body_hash := p_callback.body_hash;
  v_entry.signature_key_version := p_callback.signature_key_version;
  v_entry.token_hash := p_callback.token_hash;
  v_entry.trace_id := p_callback.trace_id;

  if v_entry.problem is null then
    v_entry.payload := aivedio._redact(v_payload, p_profile -> 'redact');
  end if;
  return v_entry;
end;
$_read_callback$;

comment on function aivedio._read_callback is
  'Stage 10: a signed delivery as its inbox row will hold it.';
