/*
 * Stage 70 · consumers · open_media
 *
 * What the media consumer does with "provider succeeded": opens the backhaul of that attempt's output.
 * The bus may deliver the message any number of times; the operation exists once. If the provider corrected
 * its result, the output is fetched again, and what was still going on with the first one is given up.
 *
 * Called by   relay/consume.py, group media
 * Writes      aivedio.media_operations
 * Locks       the attempt's operations
 * Raises      VC701  the message names no task or attempt
 */
create or replace function aivedio.open_media(p_message jsonb)
returns text
language plpgsql
volatile
security definer  -- the consumer opens operations without writing the table
set search_path = ''
as $open_media$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_task    uuid;
  v_attempt uuid;
begin
  select about.p_task, about.p_attempt
  into v_task, v_attempt
  from aivedio._message_ids(p_message) as about;

  if v_task is null then
    raise exception 'message names no task or attempt'
      using errcode = 'VC701',
            detail  = pg_catalog.left(p_message::text, 200);
  end if;

  perform aivedio._lock_operations(v_attempt);

  -- Rows decide, not the message: by now the task may have been canceled or tried again.
  insert into aivedio.media_operations as operation (
    id, task_id, attempt_id, tenant_id, project_id, operation_type, next_try_at, rescue_deadline, trace_id,
    created_at, updated_at
  )
  select
    aivedio._uuid7(), task.id, v_attempt, task.tenant_id, task.project_id, 'backhaul', v_now,
    (select min(output.expires_at) from aivedio.attempt_outputs as output where output.attempt_id = v_attempt),
    task.trace_id, v_now, v_now
  from aivedio.generation_tasks as task
  where task.id = v_task
    and task.current_attempt_id = v_attempt
    and task.status = 'provider_succeeded'
  on conflict on constraint media_operations_once do update
  -- Done or failed, and yet the task waits for it: the provider corrected its result. It is fetched again.
  set status          = 'pending',
      progress        = 0,
      tries           = 0,
      next_try_at     = excluded.next_try_at,
      rescue_deadline = excluded.rescue_deadline,
      updated_at      = excluded.updated_at
  where operation.status in ('done', 'failed');

  if not found then
    return 'ignored';
  end if;

  update aivedio.media_operations as operation
  set status      = 'failed',
      error_class = 'not_wanted',
      lease_until = null,
      updated_at  = v_now
  where operation.attempt_id = v_attempt
    and operation.operation_type <> 'backhaul'
    and operation.status in ('pending', 'running');
  return 'opened';
end;
$open_media$;

comment on function aivedio.open_media is
  'Stage 70: open the backhaul operation for a task whose provider succeeded; opened, or ignored when it exists or is no longer wanted.';

grant execute on function aivedio.open_media to aivedio_consumer;
