/*
 * Stage 30 · observation · normalise
 *
 * Shows how a provider's payload is understood, with the profile that is in force now. The processes
 * use the same interpreter; an operator calls this one to try a payload.
 *
 * Called by   operators; aivedio providers check
 * Writes      nothing
 * Locks       nothing
 * Raises      VC301  the provider is not defined
 *             VC302  the source is not webhook, poll or reconcile
 *             VC303  the payload is not a JSON object
 *             VC304  there are more outputs than the profile allows
 */
create or replace function aivedio.normalise(
  p_provider text,
  p_source   text,
  p_payload  jsonb,
  p_http     jsonb default '{}'
)
returns aivedio.provider_observation
language plpgsql
stable
security definer  -- operators may try a payload without reading the profiles
set search_path = ''
as $normalise$
begin
  if p_source is null or p_source not in ('webhook', 'poll', 'reconcile') then
    raise exception 'source must be webhook, poll or reconcile'
      using errcode = 'VC302',
            detail  = pg_catalog.format('source %s', p_source);
  end if;

  return aivedio._normalise(p_provider, aivedio._profile(p_provider), p_source, p_payload, p_http);
end;
$normalise$;

comment on function aivedio.normalise is
  'Stage 30: what a payload of this provider says, as the pipeline would understand it. Changes nothing.';

grant execute on function aivedio.normalise to aivedio_operator;
