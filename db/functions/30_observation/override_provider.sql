/*
 * Stage 30 · observation · override_provider
 *
 * Lays this installation's changes over what was shipped of a provider: another base URL, other quotas.
 * The new override replaces the earlier one whole; an empty object goes back to what was shipped. A null
 * in it removes a key. The merged profile is checked like a new one.
 *
 * Called by   operators; aivedio up, which points a provider at the pretend one
 * Writes      aivedio.providers, aivedio.poll_quotas, aivedio.operator_actions
 * Locks       the provider's row, then its buckets
 * Raises      VC301  the provider is not defined
 *             VC305  the merged profile is not usable; the detail lists why
 *             VC307  the override is not a JSON object, or who or why is missing
 */
create or replace function aivedio.override_provider(
  p_name     text,
  p_override jsonb,
  p_who      text,
  p_why      text
)
returns void
language plpgsql
volatile
security definer  -- operators may override profiles without writing the table
set search_path = ''
as $override_provider$
declare
  v_now       constant timestamptz := aivedio._clock();
  v_before    jsonb;
  v_effective jsonb;
begin
  if pg_catalog.jsonb_typeof(p_override) is distinct from 'object'
    or coalesce(p_who, '') = ''
    or coalesce(p_why, '') = ''
  then
    raise exception 'an override needs a JSON object, who and why'
      using errcode = 'VC307',
            detail  = pg_catalog.format('provider %s', p_name);
  end if;

  select provider.override
  into v_before
  from aivedio.providers as provider
  where provider.name = p_name
  for no key update;

  if not found then
    raise exception 'provider is not defined'
      using errcode = 'VC301',
            detail  = pg_catalog.format('provider %s', p_name),
            hint    = 'Define it with aivedio.define_provider first.';
  end if;

  update aivedio.providers as provider
  set override   = p_override,
      effective  = aivedio._jsonb_merge(provider.profile, p_override),
      revision   = provider.revision + 1,
      updated_at = v_now
  where provider.name = p_name
  returning provider.effective into v_effective;

  perform aivedio._check_profile(v_effective);
  perform aivedio._set_quotas(p_name, v_effective);

  perform aivedio._audit(
    p_who, 'override_provider', p_name, p_why,
    pg_catalog.jsonb_build_object('before', v_before, 'after', p_override)
  );

  perform aivedio._ring(
    'aivedio_control', p_payload => pg_catalog.jsonb_build_object('kind', 'profile', 'provider', p_name)::text
  );
end;
$override_provider$;

comment on function aivedio.override_provider is
  'Stage 30: replace this installation''s changes to a provider''s profile; audited.';

grant execute on function aivedio.override_provider to aivedio_operator;
