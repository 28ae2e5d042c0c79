/*
 * Stage 80 · replay · list_snapshot
 *
 * A page of a project's tasks, newest first, with the head of the project's stream from the same snapshot.
 * A reader of several pages goes on from the smallest last_event_id of them. A project without a task yet
 * has an empty page and cursor 0, if the caller may see it: whether it exists is not this function's to tell.
 *
 * Three ways to the page, of which one is taken: all tasks, those that ended as asked for, or among the open ones.
 * Each reads about what it shows, however many others there are.
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
language plpgsql
stable
security definer  -- the gateway reads tasks without reading the table
set search_path = ''
set plan_cache_mode = force_custom_plan  -- a plan for any status reads past all those that ended otherwise
as $list_snapshot$
declare
  v_length constant integer := least(greatest(coalesce(p_limit, 100), 1), 500);
  v_before constant uuid := coalesce(p_after, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  v_page   jsonb[];
  v_head   bigint;
begin
  if p_status is null then
    v_page := array(
      select aivedio._task_snapshot(task)
      from aivedio.generation_tasks as task
      where task.project_id = p_project
        and task.tenant_id = p_tenant
        and task.id < v_before
      order by task.id desc
      limit v_length
    );
  elsif p_status in ('ready', 'failed', 'canceled') then
    v_page := array(
      select aivedio._task_snapshot(task)
      from aivedio.generation_tasks as task
      where task.project_id = p_project
        and task.tenant_id = p_tenant
        and task.ended_as = p_status
        and task.id < v_before
      order by task.id desc
      limit v_length
    );
  else
    v_page := array(
      select aivedio._task_snapshot(task)
      from aivedio.generation_tasks as task
      where task.project_id = p_project
        and task.tenant_id = p_tenant
        and task.terminal_at is null
        and task.status = p_status
        and task.id < v_before
      order by task.id desc
      limit v_length
    );
  end if;

  select stream.last_event_id
  into v_head
  from aivedio.project_streams as stream
  where stream.project_id = p_project
    and stream.tenant_id = p_tenant;

  return pg_catalog.jsonb_build_object(
    'tasks', pg_catalog.to_jsonb(v_page),
    'last_event_id', coalesce(v_head, 0),
    -- The oldest of a full page; a page that is not full is the last.
    'next', case when pg_catalog.cardinality(v_page) = v_length then v_page[v_length] -> 'id' end
  );
end;
$list_snapshot$;

comment on function aivedio.list_snapshot is
  'Stage 80: a page of tasks, newest first: {tasks, last_event_id, next}; pass next as p_after for the page after it.';

grant execute on function aivedio.list_snapshot to aivedio_gateway, aivedio_app;
