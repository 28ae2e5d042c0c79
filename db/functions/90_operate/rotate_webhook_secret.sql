/*
 * Stage 90 · operate · rotate_webhook_secret
 *
 * Names where the secret is by which a provider signs from now on. The one before is accepted as well, as "previous",
 * until the next rotation; an older one no more. Call it before the provider signs with the new one.
 *
 * Called by   operators
 * Writes      what override_provider writes
 * Locks       the provider's row
 * Raises      VC301  the provider is not defined
 *             VC305  the profile would not be usable; the detail lists why
 *             VC307  who or why is missing
 */
create or replace function aivedio.rotate_webhook_secret(
  p_provider   text,
  p_secret_ref text,
  p_who        text,
  p_why        text
)
returns void
language plpgsql
volatile
security definer  -- operators rotate secrets without writing the table
set search_path = ''
as $rotate_webhook_secret$
declare
  v_override jsonb;
  v_current  text;
begin
  select provider.override, provider.effective #>> '{webhook,secrets,0,ref}'
  into v_override, v_current
  from aivedio.providers as provider
  where provider.name = p_provider
  for no key update;

  perform aivedio.override_provider(
    p_provider,
    aivedio._jsonb_merge(v_override, pg_catalog.jsonb_build_object('webhook', pg_catalog.jsonb_build_object(
      'secrets', pg_catalog.jsonb_build_array(
        pg_catalog.jsonb_build_object('ref', p_secret_ref, 'version', 'current'),
        pg_catalog.jsonb_build_object('ref', v_current, 'version', 'previous')
      )
    ))),
    p_who, p_why
  );
end;
$rotate_webhook_secret$;

comment on function aivedio.rotate_webhook_secret is
  'Stage 90: accept signatures by another secret, named by reference, beside the one of before; audited.';

grant execute on function aivedio.rotate_webhook_secret to aivedio_operator;
