/*
 * Stage 30 · observation · _signature_problems
 *
 * What is wrong with how a profile says that callbacks are signed: a scheme that the edge does not know, settings
 * that the scheme lacks, an event id that the signature does not cover.
 *
 * Called by   _access_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._signature_problems(
  p_webhook jsonb,
  p_local   boolean
)
returns text[]
language plpgsql
immutable
set search_path = ''
as $_signature_problems$
declare
  v_by_secret constant text[] := array[
    'standard-webhooks-v1', 'standard-webhooks-v1a', 't-v1-hex', 'time-sig1-hex', 'github-sha256-hex',
    'heygen-hex-body', 'synthesia-hex', 'hmac-hex', 'hmac-base64', 'vidu-hmac'
  ];
  v_by_jwks   constant text[] := array['fal-ed25519', 'gemini-dynamic-jwt'];
  v_scheme    constant text := coalesce(p_webhook ->> 'scheme', '');
  v_content   constant text := coalesce(p_webhook ->> 'content', '');
  v_problems  text[] := '{}'::text[];
begin
  if v_scheme = '' then
    v_problems := v_problems || 'webhook.scheme: how callbacks are signed'::text;
  elsif v_scheme <> all (v_by_secret || v_by_jwks) then
    v_problems := v_problems || pg_catalog.format('webhook.scheme: one of %s', v_by_secret || v_by_jwks);
  end if;

  if v_scheme = any (v_by_jwks) then
    if coalesce(p_webhook ->> 'jwks_url', '') !~ '^https?://[A-Za-z0-9.-]+(:\d{1,5})?/[^?#@\s]*$' then
      v_problems := v_problems || 'webhook.jwks_url: where the provider publishes its keys'::text;
    elsif p_webhook ->> 'jwks_url' like 'http://%' and not p_local then
      v_problems := v_problems || 'webhook.jwks_url: https, unless the profile is local'::text;
    end if;
  elsif not coalesce(p_webhook @? '$.secrets[0].ref', false) then
    v_problems := v_problems || 'webhook.secrets: at least one {ref, version}, for a provider that signs'::text;
  end if;

  if v_scheme = 'gemini-dynamic-jwt'
    and coalesce(p_webhook ->> 'audience', '') !~ '^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$'
  then
    v_problems := v_problems || 'webhook.audience: a reference, env:NAME or file:/path'::text;
  end if;

  if v_scheme in ('t-v1-hex', 'hmac-hex', 'hmac-base64') and p_webhook ->> 'signature_header' is null then
    v_problems := v_problems || 'webhook.signature_header: the header that holds the signature'::text;
  end if;
  if v_scheme in ('hmac-hex', 'hmac-base64') and v_content = '' then
    v_problems := v_problems || 'webhook.content: what is signed, such as {timestamp}.{body}'::text;
  elsif pg_catalog.regexp_replace(v_content, '\{(body|timestamp|header:[A-Za-z0-9-]+)\}', '', 'g') ~ '[{}]' then
    v_problems := v_problems || 'webhook.content: text with {body}, {timestamp} and {header:NAME}'::text;
  elsif v_content ~ '\{timestamp\}' and p_webhook ->> 'timestamp_header' is null then
    v_problems := v_problems || 'webhook.timestamp_header: the header that holds the timestamp'::text;
  end if;
  if coalesce(p_webhook ->> 'secret_format', 'raw') not in ('raw', 'base64', 'by_prefix') then
    v_problems := v_problems || 'webhook.secret_format: raw, base64 or by_prefix'::text;
  end if;

  return v_problems
    || array(
      select pg_catalog.format('webhook.%s: the name of a header', setting.key)
      from pg_catalog.jsonb_each(p_webhook) as setting
      where setting.key in ('signature_header', 'timestamp_header', 'header_prefix', 'event_id_header')
        and coalesce(pg_catalog.jsonb_typeof(setting.value), 'null') <> 'null'
        and coalesce(setting.value #>> '{}', '') !~ '^[A-Za-z0-9-]{1,64}$'
      order by setting.key
    )
    || case
      when p_webhook ->> 'event_id_header' is not null
        and v_scheme not in ('vidu-hmac', 'gemini-dynamic-jwt')
        and pg_catalog.lower(p_webhook ->> 'event_id_header') <> all (aivedio._signed_headers(p_webhook))
        then array['webhook.event_id_header: the signature does not cover it, so anybody could choose it']
      else '{}'::text[]
    end
    || case
      when v_scheme in ('vidu-hmac', 'gemini-dynamic-jwt')
        and coalesce(p_webhook ->> 'event_id', p_webhook ->> 'event_id_header') is not null
        then array['webhook.event_id: the signature does not cover the body, so its callbacks are hints without an id']
      else '{}'::text[]
    end;
end;
$_signature_problems$;

comment on function aivedio._signature_problems is
  'Stage 30: what is wrong with how a profile says that callbacks are signed.';
