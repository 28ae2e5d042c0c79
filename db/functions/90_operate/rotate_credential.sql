/*
 * Stage 90 · operate · rotate_credential
 *
 * Names where the key to a provider's API is from now on, and closes its circuit. The reference is to an environment
 * variable or a file of the edge processes; the key itself never comes here. Requests that are on their way finish
 * with the old one, so let it live for a few minutes.
 *
 * Called by   operators
 * Writes      aivedio.provider_credentials, aivedio.provider_circuits, aivedio.operator_actions
 * Locks       the credential's row, then the circuit's
 * Raises      VC301  the provider is not defined
 *             VC413  no reason is given
 *             VC908  not a reference
 */
create or replace function aivedio.rotate_credential(
  p_provider   text,
  p_credential text,
  p_secret_ref text,
  p_who        text,
  p_why        text
)
returns void
language plpgsql
volatile
security definer  -- operators rotate credentials without writing the table
set search_path = ''
as $rotate_credential$
begin
  perform aivedio._require_reason(p_why);
  perform aivedio._profile(p_provider);
  if coalesce(p_secret_ref, '') !~ '^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$' then
    raise exception 'not a reference to a secret'
      using errcode = 'VC908',
            hint    = 'Give env:NAME or file:/path. If this was the secret itself, revoke it: statements are logged.';
  end if;

  insert into aivedio.provider_credentials as credential (provider, name, secret_ref, updated_at)
  values (p_provider, p_credential, p_secret_ref, aivedio._clock())
  on conflict (provider, name) do update
  set secret_ref = excluded.secret_ref,
      enabled    = true,
      updated_at = excluded.updated_at;

  perform aivedio._close_circuit(p_provider, p_credential);
  perform aivedio._audit(
    p_who, 'rotate_credential', p_provider || ':' || p_credential, p_why,
    pg_catalog.jsonb_build_object('secret_ref', p_secret_ref)
  );
  perform aivedio._ring('aivedio_submit');
  perform aivedio._ring('aivedio_poll');
end;
$rotate_credential$;

comment on function aivedio.rotate_credential is
  'Stage 90: use another key for a provider''s API, named by reference, and close its circuit; audited.';

grant execute on function aivedio.rotate_credential to aivedio_operator;
