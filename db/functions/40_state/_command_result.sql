/*
 * Stage 40 · state · _command_result
 *
 * The answer of a command: its verdict and the task as it now stands.
 *
 * Called by   every command, and the settlements that end as one
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._command_result(
  p_verdict text,
  p_task    aivedio.generation_tasks,
  p_changed boolean
)
returns aivedio.applied
language sql
immutable
set search_path = ''
as $_command_result$
  select row(
    p_verdict, p_task.id, p_task.current_attempt_id, p_task.version,
    case when p_changed then p_task.last_event_id end, p_task.status, p_task.stage, p_task.progress
  )::aivedio.applied;
$_command_result$;

comment on function aivedio._command_result is
  'Stage 40: the applied row for a command; the event id only if it changed something.';
