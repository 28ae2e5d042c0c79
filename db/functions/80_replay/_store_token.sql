/*
 * Stage 80 · replay · _store_token
 *
 * Stores a one-time token, by its hash. It can be redeemed once, within the setting stream_token_s (login: ten times
 * that).
 *
 * Called by   issue_token, issue_operator_token
 * Writes      aivedio.one_time_tokens
 * Locks       the new row
 * Raises      VC801  the hash is not SHA-256
 */
create or replace function aivedio._store_token(
  p_purpose    text,
  p_token_hash bytea,
  p_tenant     uuid,
  p_project    uuid,
  p_user       uuid,
  p_session    text,
  p_claims     jsonb
)
returns timestamptz
language plpgsql
volatile
set search_path = ''
as $_store_token$
declare
  v_until constant timestamptz := aivedio._clock() + pg_catalog.make_interval(
    secs => aivedio._setting('stream_token_s')::double precision * case p_purpose when 'login' then 10 else 1 end
  );
begin
  if pg_catalog.octet_length(p_token_hash) is distinct from 32 then
    raise exception 'token hash is not SHA-256'
      using errcode = 'VC801',
            hint    = 'Send the 32 bytes of the token''s SHA-256; the token itself never enters the database.';
  end if;

  insert into aivedio.one_time_tokens (
    token_hash, purpose, tenant_id, project_id, user_id, session_id, claims, expires_at
  )
  values (p_token_hash, p_purpose, p_tenant, p_project, p_user, p_session, p_claims, v_until);
  return v_until;
end;
$_store_token$;

comment on function aivedio._store_token is
  'Stage 80: store a one-time token by its SHA-256; answers when it expires.';
