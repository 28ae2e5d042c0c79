/*
 * Stage 20 · poll · _rank_polls
 *
 * Chooses which due attempts are polled now, in one statement, so that no bucket is overdrawn and nobody starves:
 * within a tenant the longest due first, watched projects and nearly finished jobs some seconds ahead; between tenants
 * in turn; and at each level, model, provider and platform, only as many as its bucket has tokens. A bucket that
 * does not exist yet holds one second's worth. A circuit that is open lets nothing through; one that is due for a
 * probe, one. What is held back so is not even a candidate: however much of it there is, a tenant's jobs at other
 * providers go on.
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
  with recursive
  bucket as materialized (
    select
      quota.level,
      quota.key,
      case
        when quota.blocked_until > p_now then 0
        else pg_catalog.floor(
          least(quota.burst, quota.tokens + quota.rate * greatest(0, extract(epoch from p_now - quota.refilled_at)))
        )
      end as tokens
    from aivedio.poll_quotas as quota
  ),
  -- The tenants with scheduled polls, found by skipping through the index.
  tenant (id) as (
    (
      select attempt.tenant_id
      from aivedio.task_attempts as attempt
      where attempt.next_poll_at is not null
      order by attempt.tenant_id
      limit 1
    )
    union all
    select (
      select attempt.tenant_id
      from aivedio.task_attempts as attempt
      where attempt.next_poll_at is not null
        and attempt.tenant_id > tenant.id
      order by attempt.tenant_id
      limit 1
    )
    from tenant
    where tenant.id is not null
  ),
  platform as materialized (
    select
      greatest(1, pg_catalog.floor(aivedio._poll_rate('platform'))) as platform_burst,
      greatest(1, pg_catalog.floor(aivedio._poll_rate('tenant'))) as tenant_burst
  ),
  pollable as materialized (
    select
      provider.name,
      greatest(1, pg_catalog.floor(aivedio._poll_rate('provider', provider.effective))) as burst,
      greatest(1, pg_catalog.floor(aivedio._poll_rate('model', provider.effective))) as model_burst
    from aivedio.providers as provider
    left join bucket
      on bucket.level = 'provider'
      and bucket.key = provider.name
    where pg_catalog.jsonb_typeof(provider.effective -> 'poll') = 'object'
      and coalesce(bucket.tokens, 1) >= 1
  ),
  shut as materialized (
    select circuit.provider, circuit.credential
    from aivedio.provider_circuits as circuit
    where (circuit.state = 'open' and coalesce(circuit.retry_at > p_now, true))
      or (circuit.state = 'half_open' and coalesce(circuit.probe_until > p_now, true))
  ),
  due as materialized (
    select candidate.*
    from tenant
    cross join platform
    left join bucket
      on bucket.level = 'tenant'
      and bucket.key = tenant.id::text
    cross join lateral (
      select
        attempt.id, attempt.tenant_id, attempt.provider, attempt.credential, attempt.model,
        attempt.next_poll_at
          - case when watcher.project_id is null then interval '0' else interval '10 seconds' end
          - case when attempt.progress >= 80 then interval '5 seconds' else interval '0' end as rank
      from aivedio.task_attempts as attempt
      left join aivedio.project_watchers as watcher
        on watcher.project_id = attempt.project_id
        and watcher.until > p_now
      where attempt.tenant_id = tenant.id
        and attempt.next_poll_at <= p_now
        and (attempt.poll_lease_until is null or attempt.poll_lease_until <= p_now)
        and attempt.provider_task_id is not null
        and attempt.provider in (select pollable.name from pollable)
        and (attempt.provider, attempt.credential) not in (select shut.provider, shut.credential from shut)
        and attempt.provider || '/' || attempt.model not in (
          select bucket.key from bucket where bucket.level = 'model' and bucket.tokens < 1
        )
      order by attempt.next_poll_at
      limit least(p_limit, coalesce(bucket.tokens, platform.tenant_burst))
    ) as candidate
    where tenant.id is not null
  ),
  in_tenant as (
    select
      due.*,
      pg_catalog.row_number() over (partition by due.tenant_id order by due.rank) as turn,
      circuit.state as circuit,
      pg_catalog.row_number() over (partition by due.provider, due.credential order by due.rank) as probe
    from due
    left join aivedio.provider_circuits as circuit
      on circuit.provider = due.provider
      and circuit.credential = due.credential
      and circuit.state <> 'closed'
  ),
  in_model as (
    select
      in_tenant.*,
      pg_catalog.row_number() over (
        partition by in_tenant.provider, in_tenant.model order by in_tenant.turn, in_tenant.rank
      ) as place
    from in_tenant
    where in_tenant.circuit is null
      or in_tenant.probe = 1
  ),
  in_provider as (
    select
      in_model.id, in_model.provider, in_model.turn, in_model.rank,
      pg_catalog.row_number() over (partition by in_model.provider order by in_model.turn, in_model.rank) as place
    from in_model
    join pollable on pollable.name = in_model.provider
    left join bucket
      on bucket.level = 'model'
      and bucket.key = in_model.provider || '/' || in_model.model
    where in_model.place <= coalesce(bucket.tokens, pollable.model_burst)
  ),
  in_platform as (
    select
      in_provider.id,
      pg_catalog.row_number() over (order by in_provider.turn, in_provider.rank) as place
    from in_provider
    join pollable on pollable.name = in_provider.provider
    left join bucket
      on bucket.level = 'provider'
      and bucket.key = in_provider.provider
    where in_provider.place <= coalesce(bucket.tokens, pollable.burst)
  )
  select coalesce(pg_catalog.array_agg(in_platform.id order by in_platform.place), '{}')
  from in_platform
  cross join platform
  left join bucket
    on bucket.level = 'platform'
    and bucket.key = '*'
  where in_platform.place <= least(p_limit, coalesce(bucket.tokens, platform.platform_burst));
$_rank_polls$;

comment on function aivedio._rank_polls is
  'Stage 20: the due attempts that may be polled now, in order, within all token buckets and circuits.';
