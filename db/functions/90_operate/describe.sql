/*
 * Stage 90 · operate · describe
 *
 * The functions of this schema that somebody may call, from the catalog: by stage, then by name. p_role leaves
 * only those of one role, named with or without aivedio_.
 *
 * Called by   DBAs; deploy/sql_page.py, which makes docs/sql.md of it
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.describe(p_role text default null)
returns setof aivedio.described_function
language sql
stable
security definer  -- like every public function; the catalog is open to all
set search_path = ''
as $describe$
  select
    (pg_catalog.regexp_match(comment.text, '^Stage (\d\d): '))[1] as stage,
    function.proname::text as name,
    pg_catalog.replace(pg_catalog.pg_get_function_arguments(function.oid), 'aivedio.', ''),
    pg_catalog.replace(pg_catalog.pg_get_function_result(function.oid), 'aivedio.', ''),
    callers.roles,
    pg_catalog.regexp_replace(comment.text, '^Stage \d\d: ', '')
  from pg_catalog.pg_proc as function
  cross join lateral pg_catalog.obj_description(function.oid, 'pg_proc') as comment (text)
  cross join lateral (
    select pg_catalog.array_agg(pg_catalog.replace(role.rolname, 'aivedio_', '') order by role.rolname) as roles
    from pg_catalog.aclexplode(function.proacl) as entry
    join pg_catalog.pg_roles as role on role.oid = entry.grantee
    where role.rolname <> 'aivedio_owner'
  ) as callers
  where function.pronamespace = 'aivedio'::regnamespace
    and pg_catalog.left(function.proname, 1) <> '_'
    and (p_role is null or pg_catalog.replace(p_role, 'aivedio_', '') = any (callers.roles))
  order by stage, name;
$describe$;

comment on function aivedio.describe is
  'Stage 90: the functions that may be called from outside, with signature, roles and meaning; of one role if it is named.';

grant execute on function aivedio.describe to aivedio_operator, aivedio_app;
