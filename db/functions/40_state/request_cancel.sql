/*
 * Stage 40 · state · request_cancel
 *
 * Records that a user wants a task canceled. That is not "canceled": unless nothing was submitted yet, the
 * provider may still finish first. A repeat is a duplicate; what is over is refused.
 *
 *   created                              canceled at once, never submitted
 *   submitting up to running, unknown    cancel_requested; the submit edge tells the provider
 *   provider_succeeded, processing_media canceled if the project discards results, else refused
 *   ready, failed                        refused
 *
 * Called by   edge/gateway/app.py as aivedio_app; applications
 * Writes      aivedio.task_attempts, aivedio.operator_actions; what _emit writes
 * Locks       project stream → task → attempt
 * Raises      VC404  there is no such task in this project of this tenant
 */
create or replace function aivedio.request_cancel(
  p_tenant   uuid,
  p_project  uuid,
  p_task     uuid,
  p_user     uuid,
  p_trace_id text default null
)
returns aivedio.applied
language plpgsql
volatile
security definer  -- applications cancel tasks without writing tables
set search_path = ''
as $request_cancel$
declare
  v_now    constant timestamptz := aivedio._clock();
  v_task   aivedio.generation_tasks;
  v_policy text;
begin
  v_task := aivedio._lock_task(p_tenant, p_project, p_task);

  if v_task.status in ('cancel_requested', 'canceled')
    or (v_task.cancel_requested_at is not null and v_task.terminal_at is null)
  then
    return aivedio._command_result('duplicate', v_task, false);
  end if;

  if v_task.status in ('ready', 'failed') then
    return aivedio._command_result('refused', v_task, false);
  end if;

  if v_task.status in ('provider_succeeded', 'processing_media') then
    select settings.cancel_policy
    into v_policy
    from aivedio.project_settings as settings
    where settings.project_id = p_project;
    if v_policy is distinct from 'discard' then
      return aivedio._command_result('refused', v_task, false);
    end if;
    v_task.status := 'canceled';
  elsif v_task.status = 'created' then
    v_task.status := 'canceled';
    update aivedio.task_attempts as attempt
    set status       = 'canceled',
        known_status = 'canceled',
        terminal_at  = v_now,
        submit_state = 'withdrawn',
        next_poll_at = null,
        updated_at   = v_now
    where attempt.id = v_task.current_attempt_id;
  else
    v_task.status := 'cancel_requested';
    update aivedio.task_attempts as attempt
    set cancel_state  = 'due',
        cancel_due_at = v_now,
        updated_at    = v_now
    where attempt.id = v_task.current_attempt_id;
  end if;

  v_task.cancel_requested_at := v_now;
  v_task := aivedio._emit(v_task, v_task.current_attempt_id, 'command', v_now);

  perform aivedio._audit(
    coalesce(p_user::text, 'unknown'), 'request_cancel', p_task::text, 'asked by a user',
    pg_catalog.jsonb_build_object('trace_id', pg_catalog.left(p_trace_id, 200))
  );

  perform aivedio._ring('aivedio_submit');
  perform aivedio._ring_outbox(array[v_task.id]);
  return aivedio._command_result('applied', v_task, true);
end;
$request_cancel$;

comment on function aivedio.request_cancel is
  'Stage 40: ask for a task''s cancellation; verdict applied, duplicate, or refused when it is too late.';

grant execute on function aivedio.request_cancel to aivedio_app, aivedio_gateway;
