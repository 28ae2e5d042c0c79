/*
 * Stage 40 · state · _lock_attempt
 *
 * _lock_attempts for one attempt, as most callers have: there is nothing to sort. Answers whether it exists.
 *
 * Called by   _lock_attempts
 * Writes      nothing
 * Locks       project stream → task → attempt
 */
create or replace function aivedio._lock_attempt(p_attempt uuid)
returns boolean
language plpgsql
volatile
set search_path = ''
as $_lock_attempt$
declare
  v_project uuid;
  v_task    uuid;
begin
  -- Neither ever changes for an attempt, so they can be read before the locks.
  select attempt.project_id, attempt.task_id
  into v_project, v_task
  from aivedio.task_attempts as attempt
  where attempt.id = p_attempt;

  if not found then
    return false;
  end if;

  perform 1 from aivedio.project_streams as stream where stream.project_id = v_project for no key update;
  perform 1 from aivedio.generation_tasks as task where task.id = v_task for no key update;
  perform 1 from aivedio.task_attempts as attempt where attempt.id = p_attempt for no key update;
  return true;
end;
$_lock_attempt$;

comment on function aivedio._lock_attempt is
  'Stage 40: lock the stream, task and attempt that a change of this attempt touches, in the fixed order; false when there is no such attempt.';
