/*
 * Stage 80 · replay · read_snapshot
 *
 * One task as it is now, with the head of its project's stream from the same snapshot: events
 * after last_event_id continue it without a hole. STABLE, because two snapshots would make a cursor that
 * lies about the state next to it.
 *
 * Called by   edge/gateway/app.py
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.read_snapshot(
  p_tenant  uuid,
  p_project uuid,
  p_task    uuid
)
returns jsonb
language sql
stable
security definer  -- the gateway reads tasks without reading the table
set search_path = ''
as $read_snapshot$
  select pg_catalog.jsonb_build_object(
    -- Inside as well: the task's own last event may have been pruned, and as a cursor would reset for ever.
    'task', aivedio._task_snapshot(task) || pg_catalog.jsonb_build_object('last_event_id', stream.last_event_id),
    'last_event_id', stream.last_event_id
  )
  from aivedio.generation_tasks as task
  join aivedio.project_streams as stream on stream.project_id = task.project_id
  where task.id = p_task
    and task.project_id = p_project
    and task.tenant_id = p_tenant;
$read_snapshot$;

comment on function aivedio.read_snapshot is
  'Stage 80: one task and the cursor that continues it; null when the tenant''s project has no such task.';

grant execute on function aivedio.read_snapshot to aivedio_gateway, aivedio_app;
