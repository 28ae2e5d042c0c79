/*
 * Stage 30 · observation · _profile
 *
 * The profile of a provider that is in force: what was shipped, with this installation's changes.
 *
 * Called by   _apply_callbacks, accept_callbacks, _send_submit, settle_cancel, settle_poll, settle_submit, normalise,
 *             record_submission, resolve_case, rotate_credential
 * Writes      nothing
 * Locks       nothing
 * Raises      VC301  the provider is not defined
 */
create or replace function aivedio._profile(p_provider text)
returns jsonb
language plpgsql
stable
set search_path = ''
as $_profile$
declare
  v_profile jsonb;
begin
  -- The concatenation leaves a plain value: a compressed one would be unpacked again by each use.
  select provider.effective || '{}'
  into v_profile
  from aivedio.providers as provider
  where provider.name = p_provider;

  if not found then
    raise exception 'provider is not defined'
      using errcode = 'VC301',
            detail  = pg_catalog.format('provider %s', p_provider),
            hint    = 'Define it with aivedio.define_provider, as the files in db/providers do.';
  end if;

  return v_profile;
end;
$_profile$;

comment on function aivedio._profile is
  'Stage 30: the profile of a provider that is in force.';
