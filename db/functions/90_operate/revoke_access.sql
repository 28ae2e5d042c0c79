/*
 * Stage 90 · operate · revoke_access
 *
 * Ends the access of a session, user, project or tenant: credentials issued until now are refused, and gateways
 * close its streams at the bell, or at their next heartbeat without it.
 *
 * Called by   operators; applications at logout
 * Writes      aivedio.access_revocations, aivedio.operator_actions
 * Locks       the revocation's row
 */
create or replace function aivedio.revoke_access(
  p_kind    text,
  p_subject text,
  p_who     text,
  p_why     text,
  p_keep    interval default interval '30 days'
)
returns void
language plpgsql
volatile
security definer  -- operators revoke without writing the table
set search_path = ''
as $revoke_access$
declare
  v_now constant timestamptz := aivedio._clock();
begin
  insert into aivedio.access_revocations as revocation (kind, subject, revoked_at, until)
  values (p_kind, p_subject, v_now, v_now + p_keep)
  on conflict (kind, subject) do update
  set revoked_at = excluded.revoked_at,
      until      = excluded.until;

  perform aivedio._audit(p_who, 'revoke_access', p_kind || ':' || p_subject, p_why);

  perform pg_catalog.pg_notify(
    'aivedio_control',
    pg_catalog.jsonb_build_object('kind', 'revoked', 'what', p_kind, 'subject', p_subject)::text
  );
end;
$revoke_access$;

comment on function aivedio.revoke_access is
  'Stage 90: end the access of a session, user, project or tenant, audited; p_keep is at least the longest life of a credential.';

grant execute on function aivedio.revoke_access to aivedio_operator, aivedio_app;
