/*
 * Stage 20 · poll · settle_cancel
 *
 * Records the answer to a cancellation. Whatever it says, the job's status is only what the next poll finds: a provider
 * that accepts may still finish first. So a confirmed cancel, and one that came too late, make that poll due
 * soon. Faults are tried again, later each time, up to cancel_retries.
 *
 * Called by   edge/intake/submit.py, as aivedio_submit
 * Writes      aivedio.task_attempts, aivedio.alarms
 * Locks       the attempt → alarm
 * Raises      VC201  the outcome has no known shape
 */
create or replace function aivedio.settle_cancel(
  p_attempt uuid,
  p_token   bigint,
  p_outcome jsonb
)
returns aivedio.applied
language plpgsql
volatile
security definer  -- aivedio_submit may settle without writing tables
set search_path = ''
as $settle_cancel$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_attempt aivedio.task_attempts;
  v_profile jsonb;
  v_status  integer;
  v_meaning text;
  v_state   text;
  v_wait    interval;
begin
  perform aivedio._check_outcome(p_outcome);
  v_status := (p_outcome ->> 'http_status')::integer;

  perform aivedio._lock_attempts(array[p_attempt]);

  select attempt.*
  into v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = p_attempt;

  if not found then
    return aivedio._settled('orphan', p_attempt);
  elsif v_attempt.cancel_token is distinct from p_token then
    return aivedio._settled('stale_attempt', p_attempt);
  elsif v_attempt.cancel_state <> 'sent' or v_attempt.cancel_state is null then
    return aivedio._settled('duplicate', p_attempt);
  end if;

  v_profile := aivedio._profile(v_attempt.provider);
  v_meaning := case
    when v_status is null then 'retry'
    else aivedio._answer_meaning(v_profile, 'cancel', v_status, p_outcome -> 'body')
  end;
  -- What the body says comes before what the status confirms.
  if v_meaning = aivedio._http_meaning(v_profile, 'cancel', v_status)
    and v_profile #> '{cancel,confirmed}' @> pg_catalog.to_jsonb(v_status)
  then
    v_meaning := 'confirmed';
  end if;

  v_state := case
    when v_meaning in ('confirmed', 'canceled', 'body') then 'accepted'
    -- It would be refused again: the job is over, or cannot be canceled any more. The poll will tell.
    when v_meaning in ('refused', 'failed') then 'given_up'
    when v_attempt.cancel_tries >= aivedio._setting('cancel_retries') then 'given_up'
    else 'due'
  end;
  v_wait := greatest(
    aivedio._backoff(2, 120, v_attempt.cancel_tries - 1),
    pg_catalog.make_interval(secs => least(300, greatest(0, (p_outcome ->> 'retry_after_s')::double precision)))
  );

  update aivedio.task_attempts as attempt
  set cancel_state       = v_state,
      cancel_due_at      = case when v_state = 'due' then v_now + v_wait else attempt.cancel_due_at end,
      cancel_lease_until = null,
      next_poll_at       = case
        when v_state <> 'due' and attempt.terminal_at is null
        then least(attempt.next_poll_at, aivedio._if_polled(attempt.provider, v_now + aivedio._backoff(2, 2, 0)))
        else attempt.next_poll_at
      end,
      updated_at         = v_now
  where attempt.id = p_attempt;

  if v_state = 'given_up' and v_meaning not in ('refused', 'failed') then
    perform aivedio._raise_alarm(
      'cancel_given_up', v_attempt.provider,
      pg_catalog.jsonb_build_object('attempt_id', p_attempt, 'http_status', v_status)
    );
  end if;
  if v_state <> 'due' then
    perform aivedio._ring('aivedio_poll');
  end if;
  return aivedio._settled('applied', p_attempt);
end;
$settle_cancel$;

comment on function aivedio.settle_cancel is
  'Stage 20: record the answer to a cancellation; verdict applied, duplicate, stale_attempt or orphan.';

grant execute on function aivedio.settle_cancel to aivedio_submit;
