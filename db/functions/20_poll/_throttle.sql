/*
 * Stage 20 · poll · _throttle
 *
 * A provider said "too many requests": its whole bucket waits, as long as it asked for or doubling with each refusal
 * in a row, and from then on fills at half its rate, which grows back slowly.
 *
 * Called by   _reschedule_poll, after circuits
 * Writes      aivedio.poll_quotas
 * Locks       the provider's bucket
 */
create or replace function aivedio._throttle(
  p_provider      text,
  p_profile       jsonb,
  p_retry_after_s double precision
)
returns timestamptz
language plpgsql
volatile
set search_path = ''
as $_throttle$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_base  constant double precision := coalesce((p_profile #>> '{poll,throttle_base_s}')::double precision, 5);
  v_cap   constant double precision := coalesce((p_profile #>> '{poll,cap_s}')::double precision, 300);
  v_until timestamptz;
begin
  update aivedio.poll_quotas as quota
  set blocked_until = greatest(
        quota.blocked_until,
        v_now + case
          when p_retry_after_s is not null then pg_catalog.make_interval(secs => p_retry_after_s)
          else aivedio._backoff(v_base, v_cap, quota.refusals)
        end
      ),
      -- Answers to the polls of one batch are one refusal, not many.
      refusals      = quota.refusals + (quota.blocked_until is null or quota.blocked_until <= v_now)::integer,
      rate          = case
        when quota.blocked_until is null or quota.blocked_until <= v_now
        then greatest(quota.rate / 2, quota.full_rate / 16)
        else quota.rate
      end,
      tokens        = least(quota.tokens, 1)
  where quota.level = 'provider'
    and quota.key = p_provider
  returning quota.blocked_until into v_until;

  return v_until;
end;
$_throttle$;

comment on function aivedio._throttle is
  'Stage 20: block and slow a provider''s bucket after a 429; answers until when.';
