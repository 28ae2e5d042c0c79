/*
 * Stage 80 · replay · _task_snapshot
 *
 * A task as a snapshot shows it: the public fields of its events, and what never changes.
 *
 * Called by   read_snapshot, list_snapshot, replay_callback
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._task_snapshot(p_task aivedio.generation_tasks)
returns jsonb
language sql
stable
set search_path = ''
as $_task_snapshot$
  select aivedio._public_task(p_task) || pg_catalog.jsonb_build_object(
    'id', p_task.id,
    'last_event_id', p_task.last_event_id,
    'created_at', pg_catalog.to_char(p_task.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'provider', p_task.provider,
    'model', p_task.model,
    'prompt', pg_catalog.left(p_task.input ->> 'prompt', 500)
  );
$_task_snapshot$;

comment on function aivedio._task_snapshot is
  'Stage 80: the public form of a task in a snapshot.';
