/*
 * Stage 80 · replay · may_access
 *
 * The role in which somebody may use a project: by the projects that the session's own claims name
 * (p_claimed), or by membership. Null means no, for whatever reason: not a member, a foreign project,
 * a missing one, or a revocation after the session was issued.
 *
 * Called by   edge/gateway/access.py, on each request and once a heartbeat for each open stream
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.may_access(
  p_tenant    uuid,
  p_project   uuid,
  p_user      uuid,
  p_session   text,
  p_issued_at timestamptz,
  p_claimed   boolean default false
)
returns text
language sql
stable
security definer  -- the gateway asks without reading members and revocations
set search_path = ''
as $may_access$
  select case
    when exists (
      select 1
      from aivedio.access_revocations as revocation
      where revocation.revoked_at >= p_issued_at
        and (revocation.kind, revocation.subject) in (
          ('session', p_session), ('user', p_user::text), ('project', p_project::text), ('tenant', p_tenant::text)
        )
    ) then null
    when exists (
      select 1
      from aivedio.project_streams as stream
      where stream.project_id = p_project
        and stream.tenant_id <> p_tenant
    ) then null
    when p_claimed then 'member'
    else (
      select member.role
      from aivedio.project_members as member
      where member.project_id = p_project
        and member.user_id = p_user
        and member.tenant_id = p_tenant
    )
  end;
$may_access$;

comment on function aivedio.may_access is
  'Stage 80: the role of a user in a project, or null. p_claimed: the session''s claims name the project.';

grant execute on function aivedio.may_access to aivedio_gateway, aivedio_app;
