/*
 * Stage 20 · poll · claim_cancels
 *
 * Hands out cancellations that the provider is still to be told of, leased like polls. They need the provider's id
 * of the job; until it is known they wait. Where a provider cannot cancel, or not any more, the wish stays with us, and
 * the task waits for the job's own end. Where a cancel at the wrong moment destroys a result, the job is polled first.
 * A claim changes no status.
 *
 * Called by   edge/intake/submit.py, as aivedio_submit
 * Writes      aivedio.task_attempts, aivedio.alarms
 * Locks       the attempts (skip locked) → alarms
 */
create or replace function aivedio.claim_cancels(
  p_worker text,
  p_limit  integer default 20
)
returns setof aivedio.provider_request
language plpgsql
volatile
security definer  -- aivedio_submit may claim without writing tables
set search_path = ''
as $claim_cancels$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_lease   constant interval := pg_catalog.make_interval(secs => aivedio._setting('cancel_lease_s')::double precision);
  v_rest    constant interval := pg_catalog.make_interval(
    secs => aivedio._setting('hint_interval_s')::double precision
  );
  v_due     record;
  v_verdict text;
  v_asked   boolean := false;
  v_attempt aivedio.task_attempts;
  v_tired   text[] := '{}'::text[];
  v_alarm   text;
begin
  for v_due in
    select attempt, attempt.id, attempt.provider, attempt.cancel_tries, provider.effective as profile
    from aivedio.task_attempts as attempt
    join aivedio.providers as provider on provider.name = attempt.provider
    where (
        (attempt.cancel_state = 'due' and attempt.cancel_due_at <= v_now)
        or (attempt.cancel_state = 'sent' and attempt.cancel_lease_until <= v_now)
      )
      and attempt.terminal_at is null
      and attempt.provider_task_id is not null
    order by attempt.cancel_due_at
    limit p_limit
    for no key update of attempt skip locked
  loop
    v_verdict := aivedio._cancel_verdict(v_due.attempt, v_due.profile);

    if pg_catalog.jsonb_typeof(v_due.profile -> 'cancel') is distinct from 'object' then
      update aivedio.task_attempts as attempt
      set cancel_state = 'unsupported', updated_at = v_now
      where attempt.id = v_due.id;
    elsif v_due.cancel_tries >= aivedio._setting('cancel_retries') then
      update aivedio.task_attempts as attempt
      set cancel_state = 'given_up', updated_at = v_now
      where attempt.id = v_due.id;
      v_tired := v_tired || v_due.provider;
    elsif v_verdict = 'too_late' then
      update aivedio.task_attempts as attempt
      set cancel_state = 'given_up', updated_at = v_now
      where attempt.id = v_due.id;
    elsif v_verdict = 'ask' then
      update aivedio.task_attempts as attempt
      set cancel_state       = 'due',
          cancel_due_at      = v_now + aivedio._backoff(2, 120, attempt.poll_failures),
          cancel_lease_until = null,
          -- While polls fail their pauses stand; and one job is asked about no more often than hints may have it.
          next_poll_at       = case
            when attempt.poll_failures = 0
              then least(attempt.next_poll_at, greatest(v_now, attempt.last_polled_at + v_rest))
            else attempt.next_poll_at
          end,
          updated_at         = v_now
      where attempt.id = v_due.id;
      v_asked := true;
    else
      update aivedio.task_attempts as attempt
      set cancel_state       = 'sent',
          cancel_token       = attempt.cancel_token + 1,
          cancel_tries       = attempt.cancel_tries + 1,
          cancel_lease_until = v_now + v_lease,
          cancel_leased_by   = p_worker,
          updated_at         = v_now
      where attempt.id = v_due.id
      returning attempt.* into v_attempt;
      return next aivedio._build_request('cancel', v_attempt, v_due.profile, v_attempt.cancel_token, null, null);
    end if;
  end loop;

  for v_alarm in
    select distinct tired.provider from pg_catalog.unnest(v_tired) as tired (provider) order by tired.provider
  loop
    perform aivedio._raise_alarm('cancel_given_up', v_alarm);
  end loop;

  if v_asked then
    perform aivedio._ring('aivedio_poll');
  end if;
end;
$claim_cancels$;

comment on function aivedio.claim_cancels is
  'Stage 20: the cancellations to send now, as complete requests, leased.';

grant execute on function aivedio.claim_cancels to aivedio_submit;
