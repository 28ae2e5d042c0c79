/*
 * Stage 80 · replay · redeem_token
 *
 * Uses up a one-time token. Of two redeemers one wins; a second use, a wrong purpose and an expired
 * token are all answered with null.
 *
 * Called by   edge/gateway/access.py; edge/console
 * Writes      aivedio.one_time_tokens
 * Locks       the token's row
 */
create or replace function aivedio.redeem_token(
  p_purpose    text,
  p_token_hash bytea
)
returns aivedio.redeemed_token
language plpgsql
volatile
security definer  -- the gateway redeems tokens without reading the table
set search_path = ''
as $redeem_token$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_token aivedio.redeemed_token;
begin
  update aivedio.one_time_tokens as token
  set used_at = v_now
  where token.token_hash = p_token_hash
    and token.purpose = p_purpose
    and token.used_at is null
    and token.expires_at > v_now
  returning token.tenant_id, token.project_id, token.user_id, token.session_id, token.claims
  into v_token;

  return v_token;
end;
$redeem_token$;

comment on function aivedio.redeem_token is
  'Stage 80: redeem a one-time token; null when it is unknown, used, expired or for another purpose.';

grant execute on function aivedio.redeem_token to aivedio_gateway, aivedio_operator;
