/*
 * Stage 30 · observation · _auth_problems
 *
 * What is wrong with how a profile says that we identify ourselves.
 *
 *   bearer     authorization: Bearer SECRET, or the header and prefix that the profile names
 *   header     a header of the profile's own, with a prefix if it has one
 *   basic      HTTP Basic; id and secret by two references, or one that holds id:secret
 *   jwt-hs256  a token signed with the secret for a short while, issued by the id; references as with basic
 *   none       nothing
 *
 * Called by   _access_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._auth_problems(p_auth jsonb)
returns text[]
language plpgsql
immutable
set search_path = ''
as $_auth_problems$
declare
  v_reference constant text := '^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$';
  v_known     constant text[] := array['kind', 'header', 'prefix', 'secret', 'id', 'lifetime_s', 'early_s'];
  v_kind      constant text := coalesce(p_auth ->> 'kind', '');
  v_problems  text[] := '{}'::text[];
begin
  if v_kind not in ('bearer', 'header', 'basic', 'jwt-hs256', 'none') then
    return array['auth.kind: bearer, header, basic, jwt-hs256 or none'];
  end if;

  if v_kind <> 'none' and coalesce(p_auth ->> 'secret', '') !~ v_reference then
    v_problems := v_problems || 'auth.secret: a reference, env:NAME or file:/path'::text;
  end if;
  if p_auth ->> 'id' is not null and v_kind not in ('basic', 'jwt-hs256') then
    v_problems := v_problems || 'auth.id: only basic and jwt-hs256 have one'::text;
  elsif coalesce(p_auth ->> 'id', 'env:X') !~ v_reference then
    v_problems := v_problems || 'auth.id: a reference, env:NAME or file:/path'::text;
  end if;
  if coalesce(p_auth ->> 'header', case v_kind when 'header' then '' else 'authorization' end) !~ '^[A-Za-z0-9-]+$' then
    v_problems := v_problems || 'auth.header: the name of a header'::text;
  end if;
  if coalesce(pg_catalog.jsonb_typeof(p_auth -> 'prefix'), 'string') <> 'string'
    or p_auth ->> 'prefix' ~ '[\x01-\x1f\x7f]'
  then
    v_problems := v_problems || 'auth.prefix: plain text before the secret'::text;
  end if;

  return v_problems || array(
    select pg_catalog.format('auth.%s: no such key', key.name)
    from pg_catalog.jsonb_object_keys(p_auth) as key (name)
    where key.name <> all (v_known)
    order by key.name
  );
end;
$_auth_problems$;

comment on function aivedio._auth_problems is
  'Stage 30: what is wrong with how a profile says that we identify ourselves.';
