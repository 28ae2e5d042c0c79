/*
 * Stage 40 · state · _lock_attempts
 *
 * Takes the locks that a change needs, for any number of attempts, in the one order that all changes
 * keep: project streams by project, then tasks, then attempts, each FOR NO KEY UPDATE, because FOR UPDATE
 * would deadlock with the key checks of foreign keys.
 *
 * Called by   apply_observation, process_inbox, settle_poll, claim_submits, report_media and the commands
 * Writes      nothing
 * Locks       project stream → task → attempt
 */
create or replace function aivedio._lock_attempts(p_attempts uuid[])
returns void
language plpgsql
volatile
set search_path = ''
as $_lock_attempts$
begin
  perform 1
  from aivedio.project_streams as stream
  where stream.project_id in (
    select attempt.project_id from aivedio.task_attempts as attempt where attempt.id = any (p_attempts)
  )
  order by stream.project_id
  for no key update;

  perform 1
  from aivedio.generation_tasks as task
  where task.id in (
    select attempt.task_id from aivedio.task_attempts as attempt where attempt.id = any (p_attempts)
  )
  order by task.id
  for no key update;

  perform 1
  from aivedio.task_attempts as attempt
  where attempt.id = any (p_attempts)
  order by attempt.id
  for no key update;
end;
$_lock_attempts$;

comment on function aivedio._lock_attempts is
  'Stage 40: lock the streams, tasks and attempts that changes of these attempts touch, in the fixed order.';
