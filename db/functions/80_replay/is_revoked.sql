/*
 * Stage 80 · replay · is_revoked
 *
 * Whether a session that was issued at a moment has been ended since: itself, its user, or its tenant.
 *
 * Called by   edge/console, on each request
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.is_revoked(
  p_tenant    text,
  p_user      text,
  p_session   text,
  p_issued_at timestamptz
)
returns boolean
language sql
stable
security definer  -- asked without reading revocations
set search_path = ''
as $is_revoked$
  select exists (
    select 1
    from aivedio.access_revocations as revocation
    where revocation.revoked_at >= p_issued_at
      and (revocation.kind, revocation.subject) in (('session', p_session), ('user', p_user), ('tenant', p_tenant))
  );
$is_revoked$;

comment on function aivedio.is_revoked is
  'Stage 80: whether a session issued at a moment has been ended since, by itself, by its user or by its tenant.';

grant execute on function aivedio.is_revoked to aivedio_operator;
