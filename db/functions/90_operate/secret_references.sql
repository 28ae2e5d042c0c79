/*
 * Stage 90 · operate · secret_references
 *
 * Where the providers' profiles expect their secrets. Required are the keys to a provider's API, by its credential
 * where one is set, and the current secrets of its callbacks; a previous secret is there only while one is rotated.
 *
 * Called by   edge/operate/doctor.py, which looks whether they are there
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.secret_references()
returns setof aivedio.secret_reference
language sql
stable
security definer  -- operators look at references without reading profiles
set search_path = ''
as $secret_references$
  select provider.name, found.reference, pg_catalog.bool_or(found.required)
  from aivedio.providers as provider
  cross join lateral (
    select credential.secret_ref as reference, true as required
    from aivedio.provider_credentials as credential
    where credential.provider = provider.name
      and credential.enabled
    union all
    select value.reference #>> '{}', true
    from pg_catalog.jsonb_path_query(
      provider.effective, '$.auth.** ? (@.type() == "string" && @ like_regex "^(env:|file:/)")'
    ) as value (reference)
    where not exists (
      select from aivedio.provider_credentials as credential
      where credential.provider = provider.name
        and credential.name = 'default'
    )
    union all
    select secret.value ->> 'ref', secret.value ->> 'version' is distinct from 'previous'
    from pg_catalog.jsonb_path_query(provider.effective, '$.webhook.secrets[*]') as secret (value)
  ) as found
  where found.reference is not null
  group by provider.name, found.reference
  order by provider.name, found.reference;
$secret_references$;

comment on function aivedio.secret_references is
  'Stage 90: where each provider''s secrets are expected, by reference, and whether it is of no use without them.';

grant execute on function aivedio.secret_references to aivedio_operator;
