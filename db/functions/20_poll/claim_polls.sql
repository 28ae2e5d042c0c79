/*
 * Stage 20 · poll · claim_polls
 *
 * Hands out the attempts to be polled now, each with a lease and a fencing token, within the token buckets of
 * platform, tenant, provider and model. One session claims at a time; another gets nothing and may come again.
 * The buckets are charged before the request is made: a poll whose worker dies is paid for, so that the
 * provider's quota holds. Commit before any HTTP.
 *
 * Called by   edge/intake/poll.py, as aivedio_poll
 * Writes      aivedio.task_attempts, aivedio.poll_quotas; what _probe_circuits writes
 * Locks       the claimed attempts (skip locked) → circuits → quotas
 */
create or replace function aivedio.claim_polls(
  p_worker text,
  p_limit  integer default 50
)
returns setof aivedio.provider_request
language plpgsql
volatile
security definer  -- aivedio_poll may claim without writing tables
set search_path = ''
as $claim_polls$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_lease   constant interval := pg_catalog.make_interval(secs => aivedio._setting('poll_lease_s')::double precision);
  v_ranked  uuid[];
  v_claimed uuid[];
begin
  if not pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtext('aivedio_claim_polls'), 0) then
    return;
  end if;

  v_ranked := aivedio._rank_polls(v_now, p_limit);
  if v_ranked = '{}' then
    return;
  end if;

  -- An attempt that a callback is changing at this moment is skipped: it may not need the poll.
  v_claimed := array(
    select attempt.id
    from aivedio.task_attempts as attempt
    where attempt.id = any (v_ranked)
      and attempt.next_poll_at <= v_now
      and (attempt.poll_lease_until is null or attempt.poll_lease_until <= v_now)
    for no key update skip locked
  );

  update aivedio.task_attempts as attempt
  set poll_lease_until = v_now + v_lease,
      lease_token      = attempt.lease_token + 1,
      leased_by        = p_worker
  where attempt.id = any (v_claimed);

  perform aivedio._probe_circuits(v_claimed, v_now + v_lease);
  perform aivedio._spend_quotas(v_now, v_claimed);

  return query
  select request.*
  from aivedio.task_attempts as attempt
  join aivedio.providers as provider on provider.name = attempt.provider
  cross join lateral aivedio._build_request(
    'poll', attempt, provider.effective, attempt.lease_token, null, null
  ) as request
  where attempt.id = any (v_claimed)
  order by pg_catalog.array_position(v_ranked, attempt.id);
end;
$claim_polls$;

comment on function aivedio.claim_polls is
  'Stage 20: the polls to make now, as complete requests, leased, within all quotas.';

grant execute on function aivedio.claim_polls to aivedio_poll;
