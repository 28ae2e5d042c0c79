/*
 * Stage 40 · state · _lock_task
 *
 * Finds a task for a command and locks what the command will change. A task of another tenant or
 * project is not found, in the same words as one that does not exist.
 *
 * Called by   adopt_attempt, record_submission, request_cancel, start_attempt
 * Writes      nothing
 * Locks       project stream → task → current attempt
 * Raises      VC404  there is no such task in this project of this tenant
 */
create or replace function aivedio._lock_task(
  p_tenant  uuid,
  p_project uuid,
  p_task    uuid
)
returns aivedio.generation_tasks
language plpgsql
volatile
set search_path = ''
as $_lock_task$
declare
  v_task aivedio.generation_tasks;
begin
  perform 1
  from aivedio.generation_tasks as task
  where task.id = p_task
    and task.project_id = p_project
    and task.tenant_id = p_tenant;

  if not found then
    raise exception 'there is no such task'
      using errcode = 'VC404',
            detail  = pg_catalog.format('task %s in project %s', p_task, p_project);
  end if;

  perform 1
  from aivedio.project_streams as stream
  where stream.project_id = p_project
  for no key update;

  select task.*
  into strict v_task
  from aivedio.generation_tasks as task
  where task.id = p_task
  for no key update;

  perform 1
  from aivedio.task_attempts as attempt
  where attempt.id = v_task.current_attempt_id
  for no key update;

  return v_task;
end;
$_lock_task$;

comment on function aivedio._lock_task is
  'Stage 40: lock a task for a command, in the fixed order, and answer its row.';
