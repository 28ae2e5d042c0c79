/*
 * Stage 70 · consumers · _fail_media
 *
 * A media operation failed: it becomes due again later, or, when that is hopeless or has been tried often
 * enough, its task fails with a public error.
 *
 * Called by   report_media, _give_up_media, holding operation → stream → task → attempt
 * Writes      aivedio.media_operations, aivedio.alarms; what _emit writes
 * Locks       the alarm's row
 */
create or replace function aivedio._fail_media(
  p_operation aivedio.media_operations,
  p_task      aivedio.generation_tasks,
  p_report    jsonb
)
returns aivedio.generation_tasks
language plpgsql
volatile
set search_path = ''
as $_fail_media$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_class constant text := pg_catalog.left(p_report ->> 'failed', 100);
  v_again constant boolean := coalesce(p_report -> 'retry', 'true'::jsonb) = 'true'::jsonb
    and p_operation.tries < aivedio._setting('media_retries');
begin
  update aivedio.media_operations as operation
  set status      = case when v_again then 'pending' else 'failed' end,
      error_class = v_class,
      lease_until = null,
      next_try_at = v_now + pg_catalog.make_interval(
        secs => least(300, 2 ^ operation.tries) * (0.8 + 0.4 * pg_catalog.random())
      ),
      updated_at  = v_now
  where operation.id = p_operation.id;

  if v_again then
    return p_task;
  end if;

  p_task.status := 'failed';
  p_task.error_code := 'media_failed';
  p_task.error_message := aivedio._public_error_message('media_failed');
  p_task := aivedio._emit(p_task, p_operation.attempt_id, 'media', v_now);
  perform aivedio._raise_alarm(
    'media_failed', p_operation.id::text,
    pg_catalog.jsonb_build_object('operation', p_operation.operation_type, 'class', v_class, 'task_id', p_task.id)
  );
  return p_task;
end;
$_fail_media$;

comment on function aivedio._fail_media is
  'Stage 70: delay a failed media operation, or give it up and fail its task; answers the task.';
