/*
 * Stage 70 · consumers · _give_up_media
 *
 * Ends one media operation whose workers vanished as often as it may be tried: nobody reports a failure of it, so
 * nothing else would. Its task fails with a public error, and an alarm is raised. A claim cannot do this: it emits
 * nothing.
 *
 * Called by   upkeep
 * Writes      aivedio.media_operations; what _fail_media writes
 * Locks       operations of the attempt → project stream → task → attempt → alarm
 */
create or replace function aivedio._give_up_media()
returns integer
language plpgsql
volatile
set search_path = ''
as $_give_up_media$
declare
  v_now       constant timestamptz := aivedio._clock();
  v_tries     constant integer := aivedio._setting('media_retries');
  v_operation aivedio.media_operations;
  v_task      aivedio.generation_tasks;
begin
  select operation.*
  into v_operation
  from aivedio.media_operations as operation
  where operation.status = 'running'
    and operation.tries >= v_tries
    and operation.lease_until < v_now
  order by operation.lease_until
  limit 1;

  if not found then
    return 0;
  end if;

  perform aivedio._lock_operations(v_operation.attempt_id);
  perform aivedio._lock_attempts(array[v_operation.attempt_id]);

  -- Chosen without a lock: its worker may have come back.
  select operation.*
  into v_operation
  from aivedio.media_operations as operation
  where operation.id = v_operation.id
    and operation.status = 'running'
    and operation.lease_until < v_now;

  if not found then
    return 0;
  end if;

  select task.*
  into strict v_task
  from aivedio.generation_tasks as task
  where task.id = v_operation.task_id;

  if v_task.current_attempt_id = v_operation.attempt_id
    and v_task.status in ('provider_succeeded', 'processing_media')
  then
    v_task := aivedio._fail_media(v_operation, v_task, '{"failed": "lease_lost", "retry": false}');
    perform aivedio._ring_outbox(array[v_task.id]);
  else
    update aivedio.media_operations as operation
    set status = 'failed', error_class = 'not_wanted', lease_until = null, updated_at = v_now
    where operation.id = v_operation.id;
  end if;
  return 1;
end;
$_give_up_media$;

comment on function aivedio._give_up_media is
  'Stage 70: fail one media operation that lost its lease as often as it may be tried; answers how many, 0 or 1.';
