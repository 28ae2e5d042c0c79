/*
 * Stage 40 · state · _own_project
 *
 * Makes a project its tenant's, if nobody used it before, and locks its stream; refuses it to any other tenant, in the
 * same words as a project that does not exist.
 *
 * Called by   _create_task, add_member
 * Writes      aivedio.project_streams
 * Locks       project stream
 * Raises      VC404  the project belongs to another tenant
 */
create or replace function aivedio._own_project(
  p_tenant  uuid,
  p_project uuid
)
returns void
language plpgsql
volatile
set search_path = ''
as $_own_project$
declare
  v_tenant uuid;
begin
  insert into aivedio.project_streams (project_id, tenant_id)
  values (p_project, p_tenant)
  on conflict (project_id) do nothing;

  select stream.tenant_id
  into strict v_tenant
  from aivedio.project_streams as stream
  where stream.project_id = p_project
  for no key update;

  if v_tenant <> p_tenant then
    raise exception 'there is no such project'
      using errcode = 'VC404',
            detail  = pg_catalog.format('project %s', p_project);
  end if;
end;
$_own_project$;

comment on function aivedio._own_project is
  'Stage 40: lock a project''s stream for its tenant, making it if need be.';
