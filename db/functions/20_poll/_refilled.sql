/*
 * Stage 20 · poll · _refilled
 *
 * What a bucket holds now: what it held, and nine tenths of its rate for the time since, up to its burst. The tenth is
 * the burst's: whoever empties a full bucket and takes all that flows in has taken no more than the rate.
 *
 * Called by   _poll_tokens, _spend_quotas, _waiting_reasons, why_waiting, provider_overview
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._refilled(
  p_quota aivedio.poll_quotas,
  p_burst double precision,
  p_now   timestamptz
)
returns double precision
language sql
immutable
set search_path = ''
as $_refilled$
  select least(
    p_burst,
    p_quota.tokens + p_quota.rate * 0.9 * greatest(0, extract(epoch from p_now - p_quota.refilled_at)::double precision)
  );
$_refilled$;

comment on function aivedio._refilled is
  'Stage 20: the tokens of a poll bucket at this moment.';
