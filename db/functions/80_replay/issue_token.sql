/*
 * Stage 80 · replay · issue_token
 *
 * Stores a one-time token, by its hash: purpose stream opens one event stream, login sets a session.
 * It can be redeemed once, within the setting stream_token_s (login: ten times that). It never makes an operator:
 * applications and gateways may call this, and issue_operator_token they may not.
 *
 * Called by   edge/gateway/app.py; aivedio up
 * Writes      aivedio.one_time_tokens
 * Locks       the new row
 * Raises      VC801  the hash is not SHA-256
 *             VC802  the claims are those of an operator
 */
create or replace function aivedio.issue_token(
  p_purpose    text,
  p_token_hash bytea,
  p_tenant     uuid,
  p_project    uuid,
  p_user       uuid,
  p_session    text,
  p_claims     jsonb default '{}'
)
returns timestamptz
language plpgsql
volatile
security definer  -- the gateway issues tokens without writing the table
set search_path = ''
as $issue_token$
begin
  if p_claims ? 'operator' then
    raise exception 'this token cannot make an operator'
      using errcode = 'VC802',
            hint    = 'Use issue_operator_token, which only operators may call.';
  end if;
  return aivedio._store_token(p_purpose, p_token_hash, p_tenant, p_project, p_user, p_session, p_claims);
end;
$issue_token$;

comment on function aivedio.issue_token is
  'Stage 80: store a one-time token by its SHA-256; answers when it expires.';

grant execute on function aivedio.issue_token to aivedio_gateway, aivedio_app, aivedio_operator;
