/*
 * Stage 20 · poll · settle_poll
 *
 * Records the answer to a poll. A body is interpreted and applied exactly as a callback would be; every other outcome
 * says something about the provider, never about the job: a query that fails changes no state but, after many in
 * a row, "we do not know". Where the profile needs a second request, the first answer is kept and that request is due
 * at once, as a poll of its own. The lease is read without locks first, then everything is locked in order and the
 * lease is looked at again: a worker whose lease was taken over is answered and ignored.
 *
 * Called by   edge/intake/poll.py, as aivedio_poll
 * Writes      what _apply_locked writes; aivedio.task_attempts, aivedio.attempt_outputs, aivedio.provider_circuits,
 *             aivedio.poll_quotas, aivedio.reconciliation_cases, aivedio.alarms
 * Locks       project stream → task → attempt → case → circuit → quota → alarms
 * Raises      VC201  the outcome has no known shape
 */
create or replace function aivedio.settle_poll(
  p_attempt uuid,
  p_token   bigint,
  p_outcome jsonb
)
returns aivedio.applied
language plpgsql
volatile
security definer  -- aivedio_poll may settle without writing tables
set search_path = ''
as $settle_poll$
declare
  v_attempt aivedio.task_attempts;
  v_profile jsonb;
  v_answer  aivedio.poll_answer;
  v_result  aivedio.applied;
begin
  perform aivedio._check_outcome(p_outcome);

  select attempt.*
  into v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = p_attempt;

  if not found then
    return aivedio._settled('orphan', p_attempt);
  elsif v_attempt.lease_token is distinct from p_token then
    return aivedio._settled('stale_attempt', p_attempt);
  elsif v_attempt.poll_lease_until is null then
    return aivedio._settled('duplicate', p_attempt);
  end if;

  v_profile := aivedio._profile(v_attempt.provider);
  v_answer := aivedio._read_poll(v_attempt, v_profile, p_outcome);

  perform aivedio._lock_attempts(array[p_attempt]);

  select attempt.*
  into strict v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = p_attempt;

  if v_attempt.lease_token is distinct from p_token then
    return aivedio._settled('stale_attempt', p_attempt);
  elsif v_attempt.poll_lease_until is null then
    return aivedio._settled('duplicate', p_attempt);
  end if;

  if v_answer.meaning = 'then' then
    return aivedio._continue_poll(v_attempt, aivedio._redact(p_outcome -> 'body', v_profile -> 'redact'));
  elsif v_answer.meaning = 'body' then
    v_result := aivedio._apply_locked(v_answer.observation);
    if (v_answer.observation).output_refs is not null and v_result.verdict <> 'stale_sequence' then
      perform aivedio._keep_outputs(v_answer.observation);
    end if;
  else
    v_result := aivedio._settled('duplicate', p_attempt);
  end if;

  v_result := aivedio._reschedule_poll(p_attempt, v_profile, v_answer, v_result);

  -- A cancel may have waited for this word.
  if v_attempt.cancel_state = 'due' and v_answer.meaning = 'body' and v_profile #> '{cancel,only_when}' is not null then
    update aivedio.task_attempts as attempt
    set cancel_due_at = least(attempt.cancel_due_at, aivedio._clock())
    where attempt.id = p_attempt
      and attempt.cancel_state = 'due';
    perform aivedio._ring('aivedio_submit');
  end if;

  if v_result.event_id is not null then
    perform aivedio._ring_outbox(array[v_result.task_id]);
  end if;
  return v_result;
end;
$settle_poll$;

comment on function aivedio.settle_poll is
  'Stage 20: record the answer to a poll and schedule the next one; a late worker is answered stale_attempt.';

grant execute on function aivedio.settle_poll to aivedio_poll;
