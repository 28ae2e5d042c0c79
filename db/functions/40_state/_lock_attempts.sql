/*
 * Stage 40 · state · _lock_attempts
 *
 * Takes the locks that a change needs, for any number of attempts, in the one order that all changes
 * keep: project streams by project, then tasks, then attempts, each FOR NO KEY UPDATE, because FOR UPDATE
 * would deadlock with the key checks of foreign keys. Answers how many attempts there are.
 *
 * Called by   process_inbox, claim_submits, settle_cancel, settle_poll, settle_submit, adopt_attempt,
 *             apply_observation, report_media, _give_up_media, resolve_case, replay_callback
 * Writes      nothing
 * Locks       project stream → task → attempt
 */
create or replace function aivedio._lock_attempts(p_attempts uuid[])
returns integer
language plpgsql
volatile
set search_path = ''
set plan_cache_mode = force_generic_plan  -- planning for each list anew costs more than all the locks
as $_lock_attempts$
declare
  v_projects uuid[];
  v_tasks    uuid[];
  v_found    integer;
begin
  if pg_catalog.cardinality(p_attempts) = 1 then
    return aivedio._lock_attempt(p_attempts[1])::integer;
  end if;

  -- Neither ever changes for an attempt, so they can be read before the locks.
  select pg_catalog.array_agg(distinct attempt.project_id), pg_catalog.array_agg(distinct attempt.task_id)
  into v_projects, v_tasks
  from aivedio.task_attempts as attempt
  where attempt.id = any (p_attempts);

  perform 1
  from aivedio.project_streams as stream
  where stream.project_id = any (v_projects)
  order by stream.project_id
  for no key update;

  perform 1
  from aivedio.generation_tasks as task
  where task.id = any (v_tasks)
  order by task.id
  for no key update;

  perform 1
  from aivedio.task_attempts as attempt
  where attempt.id = any (p_attempts)
  order by attempt.id
  for no key update;

  get diagnostics v_found = row_count;
  return v_found;
end;
$_lock_attempts$;

comment on function aivedio._lock_attempts is
  'Stage 40: lock the streams, tasks and attempts that changes of these attempts touch, in the fixed order; answers how many attempts were found.';
