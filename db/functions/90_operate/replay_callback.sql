/*
 * Stage 90 · operate · replay_callback
 *
 * What a stored callback does now: which attempt it maps to, how it is judged, and what would change. A rehearsal
 * (p_dry_run, the default) applies it for real in a subtransaction and takes all of it back, so it tells exactly
 * what would happen. Otherwise a dead or waiting callback is applied at once; one that is done cannot be: it had its
 * effect, and what it said was redacted since. Answers {callback, dry_run, attempt_id, task_id, agrees, status,
 * verdict, error, before, after}; before and after are the task as browsers see it.
 *
 * Called by   operators; aivedio replay
 * Writes      in a rehearsal nothing; else what process_inbox writes, and aivedio.operator_actions
 * Locks       the inbox row → project stream → task → attempt → cases → alarms
 * Raises      VC413  no reason is given
 *             VC905  there is no such callback, or its payload is gone
 *             VC906  it is done, and this is no rehearsal
 *             VC909  to take a rehearsal back; never leaves this function
 */
create or replace function aivedio.replay_callback(
  p_inbox   bigint,
  p_who     text,
  p_why     text,
  p_dry_run boolean default true
)
returns jsonb
language plpgsql
volatile
security definer  -- operators replay without reading or writing the inbox
set search_path = ''
as $replay_callback$
declare
  v_inbox  aivedio.provider_callback_inbox;
  v_claim  aivedio.claimed_callback;
  v_done   aivedio.processed_callback;
  v_before jsonb;
  v_after  jsonb;
  v_task   uuid;
begin
  perform aivedio._require_reason(p_why);

  select inbox.*
  into v_inbox
  from aivedio.provider_callback_inbox as inbox
  where inbox.id = p_inbox
  for no key update;

  if v_inbox.payload is null then
    raise exception 'there is no such callback, or its payload is gone'
      using errcode = 'VC905',
            detail  = pg_catalog.format('callback %s', p_inbox),
            hint    = 'Payloads are kept for retention_days_payload days after processing.';
  elsif v_inbox.process_status = 'done' and not p_dry_run then
    raise exception 'callback has had its effect'
      using errcode = 'VC906',
            detail  = pg_catalog.format('callback %s was judged %s', p_inbox, v_inbox.verdict),
            hint    = 'Replay it as a rehearsal, with p_dry_run, or poll its attempt.';
  end if;

  select mapped.id, mapped.attempt_id, mapped.agrees
  into v_claim
  from aivedio.mapped_callbacks as mapped
  where mapped.id = p_inbox;

  select attempt.task_id
  into v_task
  from aivedio.task_attempts as attempt
  where attempt.id = v_claim.attempt_id;

  begin
    perform aivedio._lock_attempts(pg_catalog.array_remove(array[v_claim.attempt_id], null));
    select aivedio._task_snapshot(task) into v_before from aivedio.generation_tasks as task where task.id = v_task;
    v_done := (aivedio._apply_callbacks(array[v_claim]))[1];
    select aivedio._task_snapshot(task) into v_after from aivedio.generation_tasks as task where task.id = v_task;
    if p_dry_run then
      raise exception 'a rehearsal is taken back' using errcode = 'VC909';
    end if;
    perform aivedio._finish_callbacks(array[v_done]);
  exception
    when sqlstate 'VC909' then
      null;  -- all that it did is taken back; the variables tell
  end;

  if not p_dry_run then
    perform aivedio._audit(
      p_who, 'replay_callback', p_inbox::text, p_why,
      pg_catalog.jsonb_build_object('status', v_done.status, 'verdict', v_done.verdict, 'error', v_done.error)
    );
    if v_done.alarm is not null then
      perform aivedio._raise_alarm(
        v_done.alarm, v_done.alarm_subject, pg_catalog.jsonb_build_object('inbox_ids', array[p_inbox])
      );
    end if;
    perform aivedio._ring_outbox(pg_catalog.array_remove(array[v_done.emitted], null));
  end if;

  return pg_catalog.jsonb_build_object(
    'callback', p_inbox,
    'dry_run', p_dry_run,
    'attempt_id', v_claim.attempt_id,
    'task_id', v_task,
    'agrees', v_claim.agrees,
    'status', v_done.status,
    'verdict', v_done.verdict,
    'error', v_done.error,
    'before', v_before,
    'after', v_after
  );
end;
$replay_callback$;

comment on function aivedio.replay_callback is
  'Stage 90: rehearse a stored callback, or apply a dead or waiting one now, audited; answers how it was mapped and judged, and the task before and after.';

grant execute on function aivedio.replay_callback to aivedio_operator;
