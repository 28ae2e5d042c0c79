/*
 * Stage 30 · observation · define_provider
 *
 * Makes a provider known, or replaces what was shipped about it. What this installation has overridden
 * stays on top. The profile is checked as a whole first; the error lists every problem. Poll buckets are
 * made anew at the profile's rates. Defining the same profile again changes nothing.
 *
 * Called by   each file of db/providers, on every migration; operators
 * Writes      aivedio.providers, aivedio.poll_quotas
 * Locks       the provider's row, then its buckets
 * Raises      VC305  the profile is not usable; the detail lists why
 *             VC306  the name is not lower-case letters, digits and underscores
 */
create or replace function aivedio.define_provider(
  p_name    text,
  p_profile jsonb
)
returns void
language plpgsql
volatile
security definer  -- operators may define providers without writing the table
set search_path = ''
as $define_provider$
declare
  v_now       constant timestamptz := aivedio._clock();
  v_effective jsonb;
begin
  if p_name is null or p_name !~ '^[a-z][a-z0-9_]{0,62}$' then
    raise exception 'provider name is not usable'
      using errcode = 'VC306',
            detail  = pg_catalog.format('name %s', p_name),
            hint    = 'Use lower-case letters, digits and underscores: the name is part of callback URLs.';
  end if;

  perform aivedio._check_profile(p_profile);

  insert into aivedio.providers as provider (name, profile, effective, updated_at)
  values (p_name, p_profile, p_profile, v_now)
  on conflict (name) do update
  set profile    = excluded.profile,
      effective  = aivedio._jsonb_merge(excluded.profile, provider.override),
      revision   = provider.revision + 1,
      updated_at = excluded.updated_at
  where provider.profile is distinct from excluded.profile
  returning provider.effective into v_effective;

  if found then
    perform aivedio._check_profile(v_effective);
    perform aivedio._set_quotas(p_name, v_effective);
    perform aivedio._ring(
      'aivedio_control', p_payload => pg_catalog.jsonb_build_object('kind', 'profile', 'provider', p_name)::text
    );
  end if;
end;
$define_provider$;

comment on function aivedio.define_provider is
  'Stage 30: define a provider by its profile, or replace the profile; overrides stay on top.';

grant execute on function aivedio.define_provider to aivedio_operator;
