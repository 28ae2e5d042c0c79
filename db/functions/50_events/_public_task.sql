/*
 * Stage 50 · events · _public_task
 *
 * What a browser may see of a task: never a provider's text, URL or cost. Events and snapshots
 * both build on it, so that they cannot differ.
 *
 * Called by   _emit, _task_snapshot
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._public_task(p_task aivedio.generation_tasks)
returns jsonb
language plpgsql
stable  -- the text of a time depends on the session's time zone, which UTC takes out
set search_path = ''
as $_public_task$
begin
  return pg_catalog.jsonb_build_object(
    'task_version', p_task.version,
    'status', p_task.status,
    'stage', p_task.stage,
    'progress', p_task.progress,
    'asset_id', p_task.asset_id,
    'attempt_no', p_task.attempt_count,
    'cancel_requested', p_task.cancel_requested_at is not null,
    'updated_at', pg_catalog.to_char(p_task.updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'error', case
      when p_task.error_code is not null then pg_catalog.jsonb_build_object(
        'code', p_task.error_code,
        'message', p_task.error_message,
        'trace_id', p_task.trace_id
      )
    end
  );
end;
$_public_task$;

comment on function aivedio._public_task is
  'Stage 50: the public fields of a task, without its id.';
