/*
 * Stage 80 · replay · watch_projects
 *
 * Says that somebody looks at these projects, for the next minute: their polls go first.
 *
 * Called by   edge/gateway, twice a minute
 * Writes      aivedio.project_watchers
 * Locks       the rows, in order of project
 */
create or replace function aivedio.watch_projects(p_projects uuid[])
returns void
language sql
volatile
security definer  -- the gateway marks projects without writing the table
set search_path = ''
as $watch_projects$
  insert into aivedio.project_watchers as watcher (project_id, until)
  select distinct project.id, aivedio._clock() + interval '1 minute'
  from pg_catalog.unnest(p_projects) as project (id)
  order by 1
  on conflict (project_id) do update
  set until = excluded.until;
$watch_projects$;

comment on function aivedio.watch_projects is
  'Stage 80: mark projects as watched for one minute.';

grant execute on function aivedio.watch_projects to aivedio_gateway;
