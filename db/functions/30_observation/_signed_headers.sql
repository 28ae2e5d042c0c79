/*
 * Stage 30 · observation · _signed_headers
 *
 * Which headers of a callback its signature covers, in lower case, by the profile's webhook section. What is not
 * among them can be rewritten by anybody on the way: it may be kept for people to read, but identifies nothing.
 *
 * Called by   _callback_event, _signature_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._signed_headers(p_webhook jsonb)
returns text[]
language plpgsql
immutable
set search_path = ''
as $_signed_headers$
declare
  v_scheme  constant text := p_webhook ->> 'scheme';
  v_prefix  constant text := pg_catalog.lower(coalesce(p_webhook ->> 'header_prefix', 'webhook'));
  v_content constant text := pg_catalog.lower(coalesce(p_webhook ->> 'content', ''));
begin
  return case
    when v_scheme in ('standard-webhooks-v1', 'standard-webhooks-v1a')
      then array[v_prefix || '-id', v_prefix || '-timestamp']
    when v_scheme = 'synthesia-hex'
      then array['synthesia-timestamp']
    when v_scheme = 'fal-ed25519'
      then array['x-fal-webhook-request-id', 'x-fal-webhook-user-id', 'x-fal-webhook-timestamp']
    when v_scheme in ('hmac-hex', 'hmac-base64')
      then array(
        select named.header[1]
        from pg_catalog.regexp_matches(v_content, '\{header:([a-z0-9-]+)\}', 'g') as named (header)
      )
      || case
        when pg_catalog.strpos(v_content, '{timestamp}') > 0
          then array[pg_catalog.lower(p_webhook ->> 'timestamp_header')]
        else '{}'::text[]
      end
    else '{}'::text[]
  end;
end;
$_signed_headers$;

comment on function aivedio._signed_headers is
  'Stage 30: the headers that a profile''s signature covers, in lower case.';
