/*
 * Stage 50 · events · _emit
 *
 * The single writer of a task's status, its events and its outbox rows. p_task is the row as it shall
 * be; _emit raises the version by one, draws the event id under the project's stream lock, links
 * it to the project's previous event, and stores task, event, outbox row and stream head together. Stage
 * and terminal_at follow from the status, but for the stages of processing_media.
 *
 * Called by   every function that changes a task, holding stream → task → attempt
 * Writes      aivedio.generation_tasks, aivedio.task_events, aivedio.outbox_events, aivedio.project_streams
 * Locks       nothing more: the caller holds the stream's and the task's row
 * Raises      VC401  the stream's row is missing
 *             23514  no partition for the next id: infrastructure, not poison; upkeep makes partitions
 */
create or replace function aivedio._emit(
  p_task        aivedio.generation_tasks,
  p_attempt     uuid,
  p_source      text,
  p_occurred_at timestamptz default null,
  p_event_type  text        default 'task.status.changed'
)
returns aivedio.generation_tasks
language plpgsql
volatile
set search_path = ''
as $_emit$
declare
  v_now    constant timestamptz := aivedio._clock();
  v_prev   bigint;
  v_public jsonb;
begin
  perform aivedio._check_lineage();

  -- The caller holds the row, so what it held before cannot have changed meanwhile.
  update aivedio.project_streams as stream
  set last_event_id = pg_catalog.nextval('aivedio.task_event_ids')
  from aivedio.project_streams as before
  where stream.project_id = p_task.project_id
    and before.project_id = p_task.project_id
  returning before.last_event_id, stream.last_event_id into v_prev, p_task.last_event_id;

  if not found then
    raise exception 'project has no stream'
      using errcode = 'VC401',
            detail  = pg_catalog.format('project %s', p_task.project_id),
            hint    = 'Streams are made by create_task and never deleted: restore the row from task_events.';
  end if;

  p_task.version := p_task.version + 1;
  p_task.updated_at := v_now;
  if p_task.status <> 'processing_media' then
    p_task.stage := p_task.status;
  end if;
  p_task.terminal_at := case
    when p_task.status in ('ready', 'failed', 'canceled') then coalesce(p_task.terminal_at, v_now)
  end;
  v_public := pg_catalog.jsonb_build_object('task_id', p_task.id) || aivedio._public_task(p_task);

  insert into aivedio.task_events (
    event_id, prev_event_id, tenant_id, project_id, task_id, attempt_id, task_version, event_type,
    public_payload, source, occurred_at, created_at
  )
  values (
    p_task.last_event_id, v_prev, p_task.tenant_id, p_task.project_id, p_task.id, p_attempt, p_task.version,
    p_event_type, v_public, p_source, p_occurred_at, v_now
  );

  insert into aivedio.outbox_events (
    id, aggregate_type, aggregate_id, aggregate_version, event_type, shard, created_at, payload
  )
  values (
    pg_catalog.nextval('aivedio.outbox_ids'), 'task', p_task.id, p_task.version, p_event_type,
    aivedio._shard(p_task.id), v_now,
    pg_catalog.jsonb_build_object(
      'event_id', p_task.last_event_id,
      'prev_event_id', v_prev,
      'event_type', p_event_type,
      'aggregate_id', p_task.id,
      'aggregate_version', p_task.version,
      'tenant_id', p_task.tenant_id,
      'project_id', p_task.project_id,
      'user_id', p_task.user_id,
      'attempt_id', p_attempt,
      'status', p_task.status,
      'stage', p_task.stage,
      'progress', p_task.progress,
      'occurred_at', p_occurred_at,
      'trace_id', p_task.trace_id,
      'public_payload', v_public
    )
  );

  update aivedio.generation_tasks as task
  set status              = p_task.status,
      stage               = p_task.stage,
      progress            = p_task.progress,
      version             = p_task.version,
      last_event_id       = p_task.last_event_id,
      current_attempt_id  = p_task.current_attempt_id,
      attempt_count       = p_task.attempt_count,
      terminal_at         = p_task.terminal_at,
      progress_at         = p_task.progress_at,
      cancel_requested_at = p_task.cancel_requested_at,
      error_code          = p_task.error_code,
      error_message       = p_task.error_message,
      asset_id            = p_task.asset_id,
      updated_at          = p_task.updated_at
  where task.id = p_task.id;

  return p_task;
end;
$_emit$;

comment on function aivedio._emit is
  'Stage 50: commit one change of a task as task row, event, outbox row and stream head; answers the task as stored.';
