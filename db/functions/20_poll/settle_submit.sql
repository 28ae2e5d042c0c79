/*
 * Stage 20 · poll · settle_submit
 *
 * Records the answer to a submission. Accepted: the provider's id is known, polling begins; if a callback was
 * faster, only the id is added. Rejected: the task fails with a public code. Surely not accepted: it is
 * due again, a bounded number of times. Unknown: a case, never a second submission; the task stays submitting.
 * An old token, or an answer to what has been answered, changes nothing; but that the provider took what was given up
 * meanwhile is kept, with a case, since it costs.
 *
 * The credential's circuit learns as it does from polls: it closes when the provider answers properly, and opens when
 * it refuses the credential or fails many times in a row.
 *
 * Called by   edge/intake/submit.py, as aivedio_submit
 * Writes      aivedio.task_attempts, aivedio.reconciliation_cases, aivedio.provider_circuits, aivedio.alarms; what
 *             _emit writes
 * Locks       project stream → task → attempt → case → circuit → alarm
 * Raises      VC201  the outcome has no known shape
 */
create or replace function aivedio.settle_submit(
  p_attempt uuid,
  p_token   bigint,
  p_outcome jsonb
)
returns aivedio.applied
language plpgsql
volatile
security definer  -- aivedio_submit may settle without writing tables
set search_path = ''
as $settle_submit$
declare
  v_attempt aivedio.task_attempts;
  v_profile jsonb;
  v_answer  aivedio.submit_answer;
  v_result  aivedio.applied;
  v_alarm   text;
begin
  perform aivedio._check_outcome(p_outcome);

  perform aivedio._lock_attempts(array[p_attempt]);

  select attempt.*
  into v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = p_attempt;

  if not found then
    return aivedio._settled('orphan', p_attempt);
  elsif v_attempt.submit_token is distinct from p_token then
    return aivedio._settled('stale_attempt', p_attempt);
  elsif v_attempt.submit_state not in ('sent', 'unknown', 'accepted')
    and v_attempt.error_class is distinct from 'given_up'
  then
    return aivedio._settled('duplicate', p_attempt);
  end if;

  v_profile := aivedio._profile(v_attempt.provider);
  v_answer := aivedio._read_submit(v_profile, p_outcome);

  if v_answer.meaning = 'accepted' then
    v_result := aivedio._accept_submit(v_attempt, v_profile, v_answer.provider_task_id);
  elsif v_attempt.submit_state in ('accepted', 'rejected')
    or (v_attempt.submit_state = 'unknown' and v_answer.meaning = 'unknown')
  then
    return aivedio._settled('duplicate', p_attempt);
  elsif v_answer.meaning = 'unknown' then
    perform aivedio._lose_submit(
      v_attempt, coalesce(p_outcome ->> 'error', 'HTTP ' || (p_outcome ->> 'http_status'), p_outcome ->> 'kind')
    );
    v_result := aivedio._settled('applied', p_attempt);
  elsif v_answer.meaning = 'again' and v_attempt.submit_tries < aivedio._setting('submit_retries') then
    perform aivedio._delay_submit(v_attempt, p_outcome);
    v_result := aivedio._settled('applied', p_attempt);
  else
    v_result := aivedio._reject_submit(v_attempt, v_answer.error_class, v_answer.error_code, v_answer.error_detail);
  end if;

  v_alarm := aivedio._learn_from_submit(v_attempt, v_profile, v_answer);
  if v_alarm is not null then
    perform aivedio._raise_alarm(v_alarm, v_attempt.provider || ':' || v_attempt.credential);
  end if;
  perform aivedio._alarm_lost_submits(array[p_attempt]);

  if v_result.event_id is not null then
    perform aivedio._ring_outbox(array[v_result.task_id]);
  end if;
  if v_answer.meaning = 'accepted' then
    perform aivedio._ring('aivedio_poll');
    if v_attempt.cancel_state = 'due' then
      -- The wish to cancel has waited for the provider's id.
      perform aivedio._ring('aivedio_submit');
    end if;
  end if;
  return v_result;
end;
$settle_submit$;

comment on function aivedio.settle_submit is
  'Stage 20: record the answer to a submission; verdict applied, duplicate, conflict, stale_attempt, orphan, or after_terminal when the attempt had been given up.';

grant execute on function aivedio.settle_submit to aivedio_submit;
