/*
 * Stage 90 · operate · resolve_case
 *
 * Closes a case with what somebody decided, and does what the decision means:
 *
 *   kept       the first end stands, the cost is accepted, the callback is let go; an overdue attempt gets the time
 *              that its provider's jobs have once more
 *   failed     the task fails with the public code submit_unknown or timed_out: for submissions without an answer,
 *              overdue attempts and those that the provider does not find; then it may be started again
 *
 * Nobody can keep what is not known: a submission without an answer, or an attempt that the provider does not find, is
 * given up, or waits for news. A late success is adopted with adopt_attempt, a submission that was found recorded with
 * record_submission; both close their case themselves. Closing a conflict ends its slow polls.
 *
 * Called by   operators
 * Writes      aivedio.reconciliation_cases, aivedio.task_attempts, aivedio.operator_actions; what _emit writes
 * Locks       project stream → task → attempt → case
 * Raises      VC413  no reason is given
 *             VC903  there is no such case
 *             VC904  the resolution does not fit the case
 */
create or replace function aivedio.resolve_case(
  p_case       uuid,
  p_resolution text,
  p_who        text,
  p_reason     text
)
returns text
language plpgsql
volatile
security definer  -- operators resolve cases without writing tables
set search_path = ''
as $resolve_case$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_case    aivedio.reconciliation_cases;
  v_attempt aivedio.task_attempts;
  v_task    aivedio.generation_tasks;
begin
  perform aivedio._require_reason(p_reason);

  select known.*
  into v_case
  from aivedio.reconciliation_cases as known
  where known.id = p_case;

  if not found then
    raise exception 'there is no such case'
      using errcode = 'VC903',
            detail  = pg_catalog.format('case %s', p_case);
  end if;

  if v_case.attempt_id is not null then
    perform aivedio._lock_attempts(array[v_case.attempt_id]);
  end if;

  -- Chosen without a lock: somebody may have resolved it since.
  perform 1
  from aivedio.reconciliation_cases as known
  where known.id = p_case
    and known.state = 'open'
  for no key update;
  if not found then
    return 'duplicate';
  end if;

  select attempt.*
  into v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = v_case.attempt_id;

  if coalesce(p_resolution, '') not in ('kept', 'failed')
    or p_resolution <> all (aivedio._resolutions(v_case, v_attempt))
  then
    raise exception 'resolution does not fit the case'
      using errcode = 'VC904',
            detail  = pg_catalog.format('case of kind %s, resolution %s', v_case.kind, p_resolution),
            hint    = 'Use what list_cases tells, or record_submission for a submission that was found.';
  end if;

  if p_resolution = 'failed' then
    v_task := aivedio._fail_attempt(
      v_case.attempt_id, case v_case.kind when 'overdue' then 'timed_out' else 'submit_unknown' end
    );
  elsif v_case.kind = 'conflict' then
    update aivedio.task_attempts as attempt
    set next_poll_at = null,
        updated_at   = v_now
    where attempt.id = v_attempt.id
      and attempt.terminal_at is not null;
  elsif v_case.kind = 'overdue' then
    -- Without a new deadline the next look at it would open the case again.
    update aivedio.task_attempts as attempt
    set deadline_at = v_now + aivedio._deadline(aivedio._profile(attempt.provider)),
        updated_at  = v_now
    where attempt.id = v_attempt.id
      and attempt.terminal_at is null;
  end if;

  perform aivedio._audit(
    p_who, 'resolve_case', p_case::text, p_reason,
    pg_catalog.jsonb_build_object('kind', v_case.kind, 'resolution', p_resolution)
  );
  perform aivedio._resolve_cases(v_case.kind, v_case.subject, p_resolution, p_who, p_reason);
  if p_resolution = 'failed' then
    perform aivedio._end_cases(v_case.attempt_id);
  end if;
  if v_task.id is not null then
    perform aivedio._ring_outbox(array[v_task.id]);
  end if;
  return 'applied';
end;
$resolve_case$;

comment on function aivedio.resolve_case is
  'Stage 90: resolve a case as kept or failed, audited; applied, or duplicate when it is resolved already.';

grant execute on function aivedio.resolve_case to aivedio_operator;
