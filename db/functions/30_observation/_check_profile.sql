/*
 * Stage 30 · observation · _check_profile
 *
 * Refuses a profile that the pipeline could not work with, and says everything that is wrong with it.
 *
 * Called by   define_provider, override_provider
 * Writes      nothing
 * Locks       nothing
 * Raises      VC305  the profile is not usable; the detail lists why
 */
create or replace function aivedio._check_profile(p_profile jsonb)
returns void
language plpgsql
stable
set search_path = ''
as $_check_profile$
declare
  v_problems constant text[] := aivedio._profile_problems(p_profile);
begin
  if v_problems <> '{}' then
    raise exception 'provider profile is not usable'
      using errcode = 'VC305',
            detail  = pg_catalog.array_to_string(v_problems, '; '),
            hint    = 'db/providers/replicate.sql is a profile that is usable.';
  end if;
end;
$_check_profile$;

comment on function aivedio._check_profile is
  'Stage 30: raise VC305 with all problems of a profile, if it has any.';
