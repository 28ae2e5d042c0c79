/*
 * Stage 20 · poll · _rank_polls
 *
 * Chooses which due attempts are polled now, in one statement, so that no bucket is overdrawn and nobody starves.
 *
 *   within a tenant   who has waited longest; the wait of watched projects and nearly finished jobs counts threefold
 *                     and has a head start of some seconds, so that they go first but never keep others from their turn
 *   between tenants   half of the places in turn, so that a small tenant does not wait for a large one, and half to who
 *                     has waited longest of all, so that a large one is not left behind
 *   at each level     tenant, model, provider and platform: only as many as its bucket has tokens
 *
 * A circuit that is open lets nothing through; one that is due for a probe, one. Candidates are taken from each lane of
 * tenant, provider and model, as many as could be polled: what is held back keeps no other lane waiting, however much
 * of it there is. A lane offers its longest due and, apart from them, the longest due of those that go first.
 *
 * Called by   claim_polls, one session at a time
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._rank_polls(
  p_now   timestamptz,
  p_limit integer
)
returns uuid[]
language sql
stable
set search_path = ''
as $_rank_polls$
  with platform as materialized (
    select
      aivedio._poll_rate('tenant') as tenant_rate,
      least(p_limit, aivedio._poll_tokens(quota, aivedio._poll_rate('platform'), p_now)) as tokens
    from (values ('*')) as one (key)
    left join aivedio.poll_quotas as quota
      on quota.level = 'platform'
      and quota.key = one.key
  ),
  pollable as materialized (
    select
      provider.name,
      aivedio._poll_tokens(quota, aivedio._poll_rate('provider', provider.effective), p_now) as tokens,
      aivedio._poll_rate('model', provider.effective) as model_rate
    from aivedio.providers as provider
    left join aivedio.poll_quotas as quota
      on quota.level = 'provider'
      and quota.key = provider.name
    where pg_catalog.jsonb_typeof(provider.effective -> 'poll') = 'object'
  ),
  shut as materialized (
    select circuit.provider, circuit.credential
    from aivedio.provider_circuits as circuit
    where (circuit.state = 'open' and coalesce(circuit.retry_at > p_now, true))
      or (circuit.state = 'half_open' and coalesce(circuit.probe_until > p_now, true))
  ),
  -- While few are due, theirs are all the lanes there are; else every lane is looked at.
  early as materialized (
    select attempt.tenant_id, attempt.provider, attempt.model
    from aivedio.task_attempts as attempt
    where attempt.next_poll_at <= p_now
    order by attempt.next_poll_at
    limit 1000
  ),
  found as materialized (
    select distinct early.tenant_id, early.provider, early.model
    from early
    where (select count(*) < 1000 from early)
    union all
    select every.p_tenant, every.p_provider, every.p_model
    from aivedio._poll_lanes() as every
    where (select count(*) = 1000 from early)
  ),
  tenant as materialized (
    select known.tenant_id, aivedio._poll_tokens(quota, platform.tenant_rate, p_now) as tokens
    from (select distinct found.tenant_id from found) as known
    cross join platform
    left join aivedio.poll_quotas as quota
      on quota.level = 'tenant'
      and quota.key = known.tenant_id::text
  ),
  model as materialized (
    select known.provider, known.model, aivedio._poll_tokens(quota, pollable.model_rate, p_now) as tokens
    from (select distinct found.provider, found.model from found) as known
    join pollable on pollable.name = known.provider
    left join aivedio.poll_quotas as quota
      on quota.level = 'model'
      and quota.key = known.provider || '/' || known.model
  ),
  lane as materialized (
    select
      found.tenant_id, found.provider, found.model,
      tenant.tokens as tenant_tokens, model.tokens as model_tokens, pollable.tokens as provider_tokens,
      least(platform.tokens, pollable.tokens, tenant.tokens, model.tokens) as room
    from found
    cross join platform
    join pollable on pollable.name = found.provider
    join tenant on tenant.tenant_id = found.tenant_id
    join model
      on model.provider = found.provider
      and model.model = found.model
  ),
  due as materialized (
    select lane.*, candidate.*
    from lane
    cross join lateral (
      (
        select attempt.id, attempt.project_id, attempt.credential, attempt.next_poll_at, attempt.progress,
          attempt.poll_first
        from aivedio.task_attempts as attempt
        where attempt.tenant_id = lane.tenant_id
          and attempt.provider = lane.provider
          and attempt.model = lane.model
          and attempt.next_poll_at <= p_now
          and (attempt.poll_lease_until is null or attempt.poll_lease_until <= p_now)
          and attempt.provider_task_id is not null
          and (attempt.provider, attempt.credential) not in (select shut.provider, shut.credential from shut)
        order by attempt.next_poll_at
        limit lane.room
      )
      union
      (
        select attempt.id, attempt.project_id, attempt.credential, attempt.next_poll_at, attempt.progress,
          attempt.poll_first
        from aivedio.task_attempts as attempt
        where attempt.tenant_id = lane.tenant_id
          and attempt.provider = lane.provider
          and attempt.model = lane.model
          and attempt.poll_first
          and attempt.next_poll_at <= p_now
          and (attempt.poll_lease_until is null or attempt.poll_lease_until <= p_now)
          and attempt.provider_task_id is not null
          and (attempt.provider, attempt.credential) not in (select shut.provider, shut.credential from shut)
        order by attempt.next_poll_at
        limit lane.room
      )
    ) as candidate
    where lane.room >= 1
  ),
  waiting as (
    select
      due.*,
      (p_now - due.next_poll_at)
        * case when due.poll_first or due.progress >= 80 or watcher.project_id is not null then 3 else 1 end
        + case when watcher.project_id is null then interval '0' else interval '10 seconds' end
        + case when due.progress >= 80 then interval '5 seconds' else interval '0' end as wait
    from due
    left join aivedio.project_watchers as watcher
      on watcher.project_id = due.project_id
      and watcher.until > p_now
  ),
  in_tenant as (
    select
      waiting.*,
      pg_catalog.row_number() over (partition by waiting.tenant_id order by waiting.wait desc, waiting.id) as turn,
      circuit.state as circuit,
      pg_catalog.row_number() over (
        partition by waiting.provider, waiting.credential order by waiting.wait desc, waiting.id
      ) as probe
    from waiting
    left join aivedio.provider_circuits as circuit
      on circuit.provider = waiting.provider
      and circuit.credential = waiting.credential
      and circuit.state <> 'closed'
  ),
  placed as (
    select
      in_tenant.*,
      least(
        2 * pg_catalog.row_number() over (order by in_tenant.turn, in_tenant.wait desc, in_tenant.id) - 1,
        2 * pg_catalog.row_number() over (order by in_tenant.wait desc, in_tenant.id)
      ) as rank
    from in_tenant
    where in_tenant.turn <= in_tenant.tenant_tokens
      and (in_tenant.circuit is null or in_tenant.probe = 1)
  ),
  in_model as (
    select
      placed.*,
      pg_catalog.row_number() over (partition by placed.provider, placed.model order by placed.rank) as place
    from placed
  ),
  in_provider as (
    select
      in_model.id, in_model.rank, in_model.provider_tokens,
      pg_catalog.row_number() over (partition by in_model.provider order by in_model.rank) as place
    from in_model
    where in_model.place <= in_model.model_tokens
  ),
  in_platform as (
    select
      in_provider.id,
      pg_catalog.row_number() over (order by in_provider.rank) as place
    from in_provider
    where in_provider.place <= in_provider.provider_tokens
  )
  select coalesce(pg_catalog.array_agg(in_platform.id order by in_platform.place), '{}')
  from in_platform
  cross join platform
  where in_platform.place <= platform.tokens;
$_rank_polls$;

comment on function aivedio._rank_polls is
  'Stage 20: the due attempts that may be polled now, in order, within all token buckets and circuits.';
