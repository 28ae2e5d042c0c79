/*
 * Stage 80 · replay · list_snapshot
 *
 * A page of a project's tasks, newest first, with the head of the project's stream from the same snapshot.
 * A reader of several pages goes on from the smallest last_event_id of them. A project without a task yet
 * has an empty page and cursor 0, if the caller may see it: whether it exists is not this function's to tell.
 *
 * Called by   edge/gateway/app.py
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.list_snapshot(
  p_tenant  uuid,
  p_project uuid,
  p_after   uuid    default null,
  p_limit   integer default 100,
  p_status  text    default null
)
returns jsonb
language sql
stable
security definer  -- the gateway reads tasks without reading the table
set search_path = ''
as $list_snapshot$
  with page as (
    select task as task, task.id
    from aivedio.generation_tasks as task
    where task.project_id = p_project
      and task.tenant_id = p_tenant
      and (p_after is null or task.id < p_after)
      and (p_status is null or task.status = p_status)
    order by task.id desc
    limit least(greatest(p_limit, 1), 500)
  )
  select pg_catalog.jsonb_build_object(
    'tasks', coalesce(
      (select pg_catalog.jsonb_agg(aivedio._task_snapshot(page.task) order by page.id desc) from page), '[]'::jsonb
    ),
    'last_event_id', coalesce(
      (
        select stream.last_event_id
        from aivedio.project_streams as stream
        where stream.project_id = p_project
          and stream.tenant_id = p_tenant
      ),
      0
    ),
    -- The oldest of a full page; a page that is not full is the last.
    'next', case
      when (select count(*) from page) = least(greatest(p_limit, 1), 500)
        then (select page.id from page order by page.id limit 1)
    end
  );
$list_snapshot$;

comment on function aivedio.list_snapshot is
  'Stage 80: a page of tasks, newest first: {tasks, last_event_id, next}; pass next as p_after for the page after it.';

grant execute on function aivedio.list_snapshot to aivedio_gateway, aivedio_app;
