/*
 * Stage 20 · poll · _settled
 *
 * The answer of a settlement that changed no task: a verdict, and the task as it stands.
 *
 * Called by   _accept_submit, _continue_poll, _lose_status, _reject_submit, settle_cancel, settle_poll, settle_submit
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._settled(
  p_verdict text,
  p_attempt uuid
)
returns aivedio.applied
language plpgsql
stable
set search_path = ''
as $_settled$
declare
  v_result aivedio.applied;
begin
  select p_verdict, task.id, p_attempt, task.version, null::bigint, task.status, task.stage, task.progress
  into v_result
  from aivedio.task_attempts as attempt
  join aivedio.generation_tasks as task on task.id = attempt.task_id
  where attempt.id = p_attempt;

  v_result.verdict := p_verdict;
  return v_result;
end;
$_settled$;

comment on function aivedio._settled is
  'Stage 20: the applied row of a settlement without effect on the task.';
