/*
 * Stage 10 · inbox · read_webhook_profiles
 *
 * What the webhook edge needs to know of each provider that calls back: how it signs, which limits hold,
 * how it wants to be answered. Secrets are references that the edge resolves. The edge reads it at its
 * start and when a bell on aivedio_control names a profile.
 *
 * Called by   edge/intake/webhook.py, as aivedio_webhook
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.read_webhook_profiles()
returns setof aivedio.webhook_profile
language sql
stable
security definer  -- aivedio_webhook may read one section of the profiles, not the rest
set search_path = ''
as $read_webhook_profiles$
  select
    provider.name,
    provider.effective -> 'webhook',
    coalesce((provider.effective ->> 'local')::boolean, false),
    provider.revision
  from aivedio.providers as provider
  where pg_catalog.jsonb_typeof(provider.effective -> 'webhook') = 'object'
  order by provider.name;
$read_webhook_profiles$;

comment on function aivedio.read_webhook_profiles is
  'Stage 10: the webhook section of each provider that calls back.';

grant execute on function aivedio.read_webhook_profiles to aivedio_webhook;
