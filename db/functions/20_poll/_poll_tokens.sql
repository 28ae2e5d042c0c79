/*
 * Stage 20 · poll · _poll_tokens
 *
 * How many polls a bucket allows now: none while it is blocked. A bucket that does not exist yet is full.
 *
 * Called by   _rank_polls
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._poll_tokens(
  p_quota aivedio.poll_quotas,
  p_rate  double precision,
  p_now   timestamptz
)
returns double precision
language sql
immutable
set search_path = ''
as $_poll_tokens$
  select case
    when p_quota.level is null then pg_catalog.floor(aivedio._poll_burst(p_rate))
    when p_quota.blocked_until > p_now then 0
    else pg_catalog.floor(aivedio._refilled(p_quota, p_quota.burst, p_now))
  end;
$_poll_tokens$;

comment on function aivedio._poll_tokens is
  'Stage 20: the whole tokens of a poll bucket at this moment.';
