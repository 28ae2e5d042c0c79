/*
 * Stage 30 · observation · _set_quotas
 *
 * Gives a provider's poll bucket the rate of its profile. A new rate starts with a full bucket; a bucket that is
 * blocked stays blocked. Buckets of models are made when they are first needed.
 *
 * Called by   define_provider, override_provider
 * Writes      aivedio.poll_quotas
 * Locks       the provider's bucket
 */
create or replace function aivedio._set_quotas(
  p_provider text,
  p_profile  jsonb
)
returns void
language plpgsql
volatile
set search_path = ''
as $_set_quotas$
declare
  v_now      constant timestamptz := aivedio._clock();
  v_provider constant double precision := aivedio._poll_rate('provider', p_profile);
  v_model    constant double precision := aivedio._poll_rate('model', p_profile);
begin
  insert into aivedio.poll_quotas as quota (level, key, tokens, rate, burst, full_rate, refilled_at)
  values (
    'provider', p_provider, aivedio._poll_burst(v_provider), v_provider, aivedio._poll_burst(v_provider), v_provider,
    v_now
  )
  on conflict (level, key) do update
  set rate      = excluded.rate,
      burst     = excluded.burst,
      full_rate = excluded.full_rate,
      tokens    = least(quota.tokens, excluded.burst)
  where quota.full_rate <> excluded.full_rate;

  update aivedio.poll_quotas as quota
  set rate      = v_model,
      burst     = aivedio._poll_burst(v_model),
      full_rate = v_model,
      tokens    = least(quota.tokens, aivedio._poll_burst(v_model))
  where quota.level = 'model'
    and pg_catalog.starts_with(quota.key, p_provider || '/')
    and quota.full_rate <> v_model;
end;
$_set_quotas$;

comment on function aivedio._set_quotas is
  'Stage 30: set the poll rates of a provider''s buckets from its profile.';
