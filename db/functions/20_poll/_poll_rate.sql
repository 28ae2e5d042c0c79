/*
 * Stage 20 · poll · _poll_rate
 *
 * How many polls per second a bucket of this level may have at most: platform and tenant by the settings, provider and
 * model by the provider's profile, where a model without a rate of its own has its provider's.
 *
 * Called by   _rank_polls, _spend_quotas, _set_quotas
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._poll_rate(
  p_level   text,
  p_profile jsonb default null
)
returns double precision
language plpgsql
stable
set search_path = ''
as $_poll_rate$
begin
  return case p_level
    when 'platform' then aivedio._setting('poll_rate_platform')
    when 'tenant' then aivedio._setting('poll_rate_tenant')
    when 'provider' then coalesce((p_profile #>> '{quota,provider}')::numeric, 10)
    when 'model' then coalesce(p_profile #>> '{quota,model}', p_profile #>> '{quota,provider}', '10')::numeric
  end;
end;
$_poll_rate$;

comment on function aivedio._poll_rate is
  'Stage 20: the full rate of a poll bucket of this level, in polls per second.';
