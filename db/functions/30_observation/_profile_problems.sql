/*
 * Stage 30 · observation · _profile_problems
 *
 * Lists what is wrong with a provider's profile, each problem with its place. Everything is looked at, so that
 * a DBA learns of all mistakes at once.
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
  v_known constant text[] := array[
    'base_url', 'local', 'auth', 'models', 'values', 'submit', 'poll', 'cancel', 'webhook', 'fields', 'functions', 'words',
    'hidden_failures', 'success_needs_output', 'errors', 'max_outputs', 'output_lifetime_s', 'deadline_s',
    'retry_span_s', 'credits', 'model_credits', 'quota', 'redact', 'redact_after', 'notes'
  ];
begin
  if pg_catalog.jsonb_typeof(p_profile) is distinct from 'object' then
    return array['a profile is a JSON object'];
  end if;

  return array(
      select pg_catalog.format('%s: no such key', key.name)
      from pg_catalog.jsonb_object_keys(p_profile) as key (name)
      where key.name <> all (v_known)
      order by key.name
    )
    || aivedio._shape_problems(p_profile)
    || aivedio._access_problems(p_profile)
    || aivedio._value_problems(p_profile)
    || aivedio._request_problems(p_profile)
    || aivedio._field_problems(p_profile)
    || aivedio._rule_problems(p_profile)
    || aivedio._number_problems(p_profile);
end;
$_profile_problems$;

comment on function aivedio._profile_problems is
  'Stage 30: everything that is wrong with a profile; empty when it is usable.';
