/*
 * Stage 70 · consumers · report_media
 *
 * What the media plane says of an operation that it holds: {"progress": 0..100}, {"done": {…}} or
 * {"failed": "class", "retry": true}. The first report of an operation moves the task to its stage; done opens the
 * next operation; done of publish, with an asset_id, is the only way to ready. Failure is retried with
 * backoff up to the setting media_retries, then the task fails. A report with an old token, or for a task that
 * went another way, changes nothing and says so.
 *
 * Called by   the media plane, as aivedio_consumer
 * Writes      aivedio.media_operations, aivedio.attempt_outputs; what _emit writes
 * Locks       the attempt's operations → project stream → task → attempt
 * Raises      VC702  the report has none of the three shapes, or publish is done without an asset_id
 *             VC703  there is no such operation
 */
create or replace function aivedio.report_media(
  p_operation uuid,
  p_token     bigint,
  p_report    jsonb
)
returns aivedio.applied
language plpgsql
volatile
security definer  -- the media plane reports without writing tables
set search_path = ''
as $report_media$
declare
  v_now       constant timestamptz := aivedio._clock();
  v_operation aivedio.media_operations;
  v_task      aivedio.generation_tasks;
  v_settings  aivedio.project_settings;
  v_stage     record;
  v_progress  smallint;
  v_new_stage boolean;
  v_before    bigint;
begin
  if not aivedio._is_media_report(p_report) then
    raise exception 'media report has no known shape'
      using errcode = 'VC702',
            detail  = pg_catalog.format('operation %s', p_operation),
            hint    = 'Send {"progress": 0..100}, {"done": {...}} or {"failed": "class", "retry": true}.';
  end if;

  v_progress := case
    when p_report ? 'done' then 100
    else least(100, greatest(0, (p_report ->> 'progress')::numeric))
  end;

  -- All of the attempt at once: done opens the next one, and that may exist already.
  perform aivedio._lock_operations(
    (select operation.attempt_id from aivedio.media_operations as operation where operation.id = p_operation)
  );

  select operation.*
  into v_operation
  from aivedio.media_operations as operation
  where operation.id = p_operation;

  if not found then
    raise exception 'there is no such media operation'
      using errcode = 'VC703',
            detail  = pg_catalog.format('operation %s', p_operation);
  end if;

  if p_report ? 'done'
    and v_operation.operation_type = 'publish'
    -- What generation_tasks_asset admits: no URL.
    and coalesce(p_report #>> '{done,asset_id}', '') !~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}$'
  then
    raise exception 'publish is not done without an asset_id'
      using errcode = 'VC702',
            detail  = pg_catalog.format('operation %s', p_operation),
            hint    = 'Send {"done": {"asset_id": "..."}}: letters, digits, _ . : -, at most 200.';
  end if;

  perform aivedio._lock_attempts(array[v_operation.attempt_id]);

  select task.*
  into strict v_task
  from aivedio.generation_tasks as task
  where task.id = v_operation.task_id;

  if v_operation.lease_token is distinct from p_token or v_operation.status <> 'running' then
    return aivedio._command_result('stale_lease', v_task, false);
  end if;

  if v_task.current_attempt_id <> v_operation.attempt_id
    or v_task.status not in ('provider_succeeded', 'processing_media')
  then
    update aivedio.media_operations as operation
    set status = 'failed', error_class = 'not_wanted', lease_until = null, updated_at = v_now
    where operation.id = p_operation;
    return aivedio._command_result('after_terminal', v_task, false);
  end if;

  v_before := v_task.version;
  v_stage := aivedio._media_stage(v_operation.operation_type);

  if p_report ? 'failed' then
    v_task := aivedio._fail_media(v_operation, v_task, p_report);
    perform aivedio._ring_outbox(array[v_task.id]);
    return aivedio._command_result('applied', v_task, v_task.version > v_before);
  end if;

  v_new_stage := v_task.stage <> v_stage.p_stage;
  v_progress := greatest(v_progress, v_operation.progress);

  update aivedio.media_operations as operation
  set progress    = v_progress,
      status      = case when p_report ? 'done' then 'done' else 'running' end,
      result      = coalesce(p_report -> 'done', operation.result),
      lease_until = case
        when p_report ? 'done' then null
        else v_now + pg_catalog.make_interval(secs => aivedio._setting('media_lease_s')::double precision)
      end,
      updated_at  = v_now
  where operation.id = p_operation;

  select settings.*
  into v_settings
  from aivedio.project_settings as settings
  where settings.project_id = v_task.project_id;

  if v_new_stage
    or (
      v_progress >= coalesce(v_task.progress, 0) + coalesce(v_settings.progress_step, 5)
      and v_now >= v_task.progress_at + coalesce(v_settings.progress_interval, interval '1 second')
    )
  then
    v_task.status := 'processing_media';
    v_task.stage := v_stage.p_stage;
    v_task.progress := v_progress;
    v_task.progress_at := v_now;
    v_task := aivedio._emit(
      v_task, v_operation.attempt_id, 'media', v_now,
      case when v_new_stage then 'task.status.changed' else 'task.progress.changed' end
    );
  end if;

  if p_report ? 'done' then
    if v_stage.p_next is not null then
      insert into aivedio.media_operations as following (
        id, task_id, attempt_id, tenant_id, project_id, operation_type, next_try_at, trace_id, created_at, updated_at
      )
      values (
        aivedio._uuid7(), v_task.id, v_operation.attempt_id, v_task.tenant_id, v_task.project_id, v_stage.p_next,
        v_now, v_task.trace_id, v_now, v_now
      )
      on conflict on constraint media_operations_once do update
      -- It exists only if the provider corrected its result: what followed the first one is done again.
      set status      = 'pending',
          progress    = 0,
          tries       = 0,
          next_try_at = excluded.next_try_at,
          updated_at  = excluded.updated_at
      where following.status in ('done', 'failed');
    else
      v_task.status := 'ready';
      v_task.asset_id := p_report #>> '{done,asset_id}';
      v_task.progress := 100;
      v_task := aivedio._emit(v_task, v_operation.attempt_id, 'media', v_now);

      update aivedio.attempt_outputs as output
      set url       = null,
          purged_at = v_now
      where output.attempt_id = v_operation.attempt_id;
    end if;
  end if;

  perform aivedio._ring_outbox(array[v_task.id]);
  return aivedio._command_result(
    case when v_task.version > v_before or p_report ? 'done' then 'applied' else 'coalesced' end,
    v_task, v_task.version > v_before
  );
end;
$report_media$;

comment on function aivedio.report_media is
  'Stage 70: record progress, result or failure of a held media operation; verdict applied, coalesced, stale_lease or after_terminal.';

grant execute on function aivedio.report_media to aivedio_consumer;
