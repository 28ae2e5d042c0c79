/*
 * Stage 20 · poll · _spend_quotas
 *
 * Takes the tokens for claimed polls: each bucket is refilled and written once, in a fixed order, whatever the size of
 * the batch. A bucket that 429 answers have slowed regains a hundredth of its full rate each second. A bucket
 * that does not exist is made, full but for what is taken.
 *
 * Called by   claim_polls, after attempts and circuits
 * Writes      aivedio.poll_quotas
 * Locks       the buckets, in order of level and key
 */
create or replace function aivedio._spend_quotas(
  p_now      timestamptz,
  p_attempts uuid[]
)
returns void
language plpgsql
volatile
set search_path = ''
as $_spend_quotas$
begin
  insert into aivedio.poll_quotas as quota (level, key, tokens, rate, burst, full_rate, refilled_at)
  with claimed as materialized (
    select
      attempt.tenant_id::text as tenant,
      attempt.provider,
      attempt.provider || '/' || attempt.model as model,
      aivedio._poll_rate('provider', provider.effective) as provider_rate,
      aivedio._poll_rate('model', provider.effective) as model_rate
    from aivedio.task_attempts as attempt
    join aivedio.providers as provider on provider.name = attempt.provider
    where attempt.id = any (p_attempts)
  ),
  spent (level, key, rate, polls) as (
    select 'platform', '*', aivedio._poll_rate('platform'), count(*) from claimed
    union all
    select 'tenant', claimed.tenant, aivedio._poll_rate('tenant'), count(*)
    from claimed
    group by claimed.tenant
    union all
    select 'provider', claimed.provider, claimed.provider_rate, count(*)
    from claimed
    group by claimed.provider, claimed.provider_rate
    union all
    select 'model', claimed.model, claimed.model_rate, count(*)
    from claimed
    group by claimed.model, claimed.model_rate
  )
  select
    spent.level, spent.key, aivedio._poll_burst(spent.rate) - spent.polls, spent.rate, aivedio._poll_burst(spent.rate),
    spent.rate, p_now
  from spent
  where spent.polls > 0
  order by spent.level, spent.key
  on conflict (level, key) do update
  set tokens      = aivedio._refilled(quota, excluded.burst, p_now) - (excluded.burst - excluded.tokens),
      rate        = least(
        excluded.full_rate,
        quota.rate + excluded.full_rate * 0.01 * greatest(0, extract(epoch from p_now - quota.refilled_at))
      ),
      burst       = excluded.burst,
      full_rate   = excluded.full_rate,
      refilled_at = p_now;
end;
$_spend_quotas$;

comment on function aivedio._spend_quotas is
  'Stage 20: refill and charge the token buckets for these claimed polls.';
