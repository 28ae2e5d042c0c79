/*
 * Stage 80 · replay · add_member
 *
 * Makes a user a member of a project, or changes the role. A project that nobody has used before becomes the tenant's.
 * A membership that another tenant has left there is not taken over but refused, as the project would be.
 *
 * Called by   operators; applications
 * Writes      aivedio.project_members; what _own_project writes
 * Locks       project stream, then the member's row
 * Raises      VC404  the project belongs to another tenant
 */
create or replace function aivedio.add_member(
  p_tenant  uuid,
  p_project uuid,
  p_user    uuid,
  p_role    text default 'member'
)
returns void
language plpgsql
volatile
security definer  -- applications add members without writing the table
set search_path = ''
as $add_member$
begin
  perform aivedio._own_project(p_tenant, p_project);

  insert into aivedio.project_members as member (project_id, user_id, tenant_id, role, added_at)
  values (p_project, p_user, p_tenant, p_role, aivedio._clock())
  on conflict (project_id, user_id) do update
  set role = excluded.role
  where member.tenant_id = excluded.tenant_id;

  if not found then
    raise exception 'there is no such project'
      using errcode = 'VC404',
            detail  = pg_catalog.format('user %s is a member of project %s for another tenant', p_user, p_project);
  end if;
end;
$add_member$;

comment on function aivedio.add_member is
  'Stage 80: give a user a role in a project: viewer, member or operator.';

grant execute on function aivedio.add_member to aivedio_app, aivedio_operator;
