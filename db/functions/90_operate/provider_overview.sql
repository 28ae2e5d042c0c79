/*
 * Stage 90 · operate · provider_overview
 *
 * Every provider as it is now: what its profile has, its polls, how well and how soon callbacks come, circuits that
 * are not closed, quotas.
 *
 * Called by   edge/console; operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.provider_overview()
returns setof aivedio.provider_summary
language sql
stable
security definer  -- operators look without reading the tables
set search_path = ''
as $provider_overview$
  with polls as materialized (
    select
      attempt.provider,
      count(*) as scheduled,
      count(*) filter (where attempt.next_poll_at <= aivedio._clock()) as due
    from aivedio.task_attempts as attempt
    where attempt.next_poll_at is not null
    group by attempt.provider
  )
  select
    provider.name,
    provider.revision,
    pg_catalog.jsonb_typeof(provider.effective -> 'webhook') is not distinct from 'object',
    pg_catalog.jsonb_typeof(provider.effective -> 'poll') is not distinct from 'object',
    provider.override <> '{}',
    coalesce(polls.scheduled, 0),
    coalesce(polls.due, 0),
    known.coverage,
    known.ends,
    known.delay_p50_s,
    known.delay_p95_s,
    known.measured_at,
    (
      select coalesce(
        pg_catalog.jsonb_agg(
          pg_catalog.jsonb_build_object(
            'credential', circuit.credential, 'state', circuit.state, 'reason', circuit.reason,
            'failures', circuit.failures, 'opened_at', circuit.opened_at, 'retry_at', circuit.retry_at
          )
          order by circuit.credential
        ),
        '[]'
      )
      from aivedio.provider_circuits as circuit
      where circuit.provider = provider.name
        and (circuit.state <> 'closed' or circuit.failures > 0)
    ),
    (
      select coalesce(
        pg_catalog.jsonb_agg(
          pg_catalog.jsonb_build_object(
            'level', quota.level, 'key', quota.key, 'rate', quota.rate, 'full_rate', quota.full_rate,
            'tokens', pg_catalog.floor(aivedio._refilled(quota, quota.burst, aivedio._clock())), 'burst', quota.burst,
            'refusals', quota.refusals,
            'blocked_until', case when quota.blocked_until > aivedio._clock() then quota.blocked_until end
          )
          order by quota.level desc, quota.key
        ),
        '[]'
      )
      from aivedio.poll_quotas as quota
      where (quota.level = 'provider' and quota.key = provider.name)
        or (quota.level = 'model' and pg_catalog.starts_with(quota.key, provider.name || '/'))
    ),
    (
      select attempt.terminal_at
      from aivedio.task_attempts as attempt
      where attempt.provider = provider.name
        and attempt.terminal_at is not null
      order by attempt.terminal_at desc
      limit 1
    )
  from aivedio.providers as provider
  left join polls on polls.provider = provider.name
  left join aivedio.callback_coverage as known on known.provider = provider.name
  order by provider.name;
$provider_overview$;

comment on function aivedio.provider_overview is
  'Stage 90: every provider now: what its profile has, polls, coverage and delay of callbacks, circuits that are not closed, quotas.';

grant execute on function aivedio.provider_overview to aivedio_operator;
