/*
 * Stage 30 · observation · _access_problems
 *
 * What is wrong with a profile's base URL and webhook section, and the check that no secret stands in it: a plain http
 * base needs "local", secrets are references, and a value that looks like one is refused wherever it stands.
 *
 * Called by   _profile_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._access_problems(p_profile jsonb)
returns text[]
language plpgsql
stable
set search_path = ''
as $_access_problems$
declare
  v_reference constant text := '^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$';
  v_base      constant text := coalesce(p_profile ->> 'base_url', '');
  v_local     constant boolean := p_profile -> 'local' = 'true';
  v_webhook   constant jsonb := p_profile -> 'webhook';
  v_known     constant text[] := array[
    'signed', 'scheme', 'secrets', 'secret_format', 'tolerance_s', 'signature_header', 'signature_prefix',
    'timestamp_header', 'header_prefix', 'content', 'jwks_url', 'audience', 'event_id_header', 'event_id', 'thin',
    'required', 'max_body', 'content_types', 'keep_headers', 'acknowledge', 'challenge', 'fields'
  ];
  v_problems  text[] := '{}'::text[];
begin
  if v_base !~ '^https?://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9._~/-]*[A-Za-z0-9._~-])?$' then
    v_problems := v_problems
      || 'base_url: a URL with scheme and host, without a slash at its end, a query or a user'::text;
  elsif v_base like 'http://%' and not coalesce(v_local, false) then
    v_problems := v_problems || 'base_url: https, unless the profile is local'::text;
  end if;

  if coalesce(p_profile -> 'local', 'false') not in ('true', 'false') then
    v_problems := v_problems || 'local: true or false'::text;
  end if;

  v_problems := v_problems || aivedio._auth_problems(p_profile -> 'auth');

  if coalesce(pg_catalog.jsonb_typeof(v_webhook), 'null') not in ('object', 'null') then
    v_problems := v_problems || 'webhook: an object or null'::text;
  elsif pg_catalog.jsonb_typeof(v_webhook) = 'object' then
    if coalesce(v_webhook -> 'signed', 'true') not in ('true', 'false') then
      v_problems := v_problems || 'webhook.signed: true or false'::text;
    elsif coalesce(v_webhook -> 'signed', 'true') = 'true' then
      v_problems := v_problems || aivedio._signature_problems(v_webhook, coalesce(v_local, false));
    end if;
    v_problems := v_problems || aivedio._answer_problems(v_webhook) || array(
      select pg_catalog.format('webhook.%s: no such key', key.name)
      from pg_catalog.jsonb_object_keys(v_webhook) as key (name)
      where key.name <> all (v_known)
      order by key.name
    );
    v_problems := v_problems || array(
      select pg_catalog.format('webhook.secrets[%s].ref: a reference, env:NAME or file:/path', secret.place - 1)
      from pg_catalog.jsonb_path_query(v_webhook, '$.secrets[*]') with ordinality as secret (value, place)
      where coalesce(secret.value ->> 'ref', '') !~ v_reference
    );
  end if;

  if p_profile::text ~ '"(whsec_|sk-|r8_|Bearer [A-Za-z0-9])' then
    v_problems := v_problems || 'a secret stands in the profile: name it by reference, and revoke it'::text;
  end if;

  return v_problems;
end;
$_access_problems$;

comment on function aivedio._access_problems is
  'Stage 30: what is wrong with a profile''s base URL, credentials and webhook section.';
