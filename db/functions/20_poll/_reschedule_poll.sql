/*
 * Stage 20 · poll · _reschedule_poll
 *
 * Ends a poll: counts it, frees its lease, decides when the attempt is asked again, and lets circuit and bucket learn.
 *
 *   an observation        by the attempt's state, and rarer where callbacks do their work; never again once it is
 *                         terminal, but for an open conflict
 *   throttled             when the bucket opens again; the attempt itself has not failed
 *   credential refused    when the circuit is probed again; the attempt itself has not failed
 *   not found             soon, while the job is fresh; then rarely, with a case
 *   any other fault       later with each one in a row; after many of them the status is unknown
 *   overdue               rarely, with a case
 *
 * Called by   settle_poll, holding stream → task → attempt
 * Writes      aivedio.task_attempts, aivedio.provider_circuits, aivedio.poll_quotas, aivedio.reconciliation_cases,
 *             aivedio.alarms; what _emit writes
 * Locks       case → circuit → quota → alarms
 */
create or replace function aivedio._reschedule_poll(
  p_attempt uuid,
  p_profile jsonb,
  p_answer  aivedio.poll_answer,
  p_result  aivedio.applied
)
returns aivedio.applied
language plpgsql
volatile
set search_path = ''
as $_reschedule_poll$
declare
  v_now      constant timestamptz := aivedio._clock();
  v_rare     constant double precision := coalesce((p_profile #>> '{poll,overdue_s}')::double precision, 600);
  v_grace    constant double precision := coalesce((p_profile #>> '{poll,not_found_grace_s}')::double precision, 60);
  v_lease    constant interval := pg_catalog.make_interval(secs => aivedio._setting('poll_lease_s')::double precision);
  v_rest     constant interval := pg_catalog.make_interval(
    secs => aivedio._setting('hint_interval_s')::double precision
  );
  v_seen     constant boolean := p_answer.meaning = 'body'
    and (p_answer.observation).normalized_status is not null;
  v_early    boolean;
  v_fault    boolean;
  v_attempt  aivedio.task_attempts;
  v_result   aivedio.applied := p_result;
  v_delay    interval;
  v_until    timestamptz;
  v_failures integer;
  v_alarms   text[] := '{}'::text[];
  v_alarm    text;
begin
  select attempt.*
  into strict v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = p_attempt;

  -- A fresh job may not be found yet; that is no failure, or its status would be unknown before the grace is over.
  v_early := p_answer.meaning = 'not_found'
    and coalesce(v_attempt.submitted_at + pg_catalog.make_interval(secs => v_grace) > v_now, false);
  v_fault := not v_seen and not v_early and p_answer.meaning not in ('throttled', 'auth');
  v_failures := case when v_seen then 0 else v_attempt.poll_failures + v_fault::integer end;
  v_delay := aivedio._poll_delay(p_profile, v_attempt.status, v_failures);
  if v_seen then
    v_delay := v_delay * aivedio._sparse_factor(v_attempt);
  end if;

  if v_fault and v_failures >= aivedio._setting('unknown_after_polls') and v_attempt.terminal_at is null then
    if v_attempt.status <> 'unknown' then
      v_result := aivedio._lose_status(v_attempt);
      v_alarms := v_alarms || 'provider_status_unknown'::text;
    end if;
    v_delay := greatest(v_delay, aivedio._poll_delay(p_profile, 'unknown', 0));
  end if;

  if v_early then
    v_delay := aivedio._poll_delay(p_profile, 'submitted', 0);
  elsif p_answer.meaning = 'not_found' and v_attempt.terminal_at is null then
    perform aivedio._note_case(
      'not_found', v_attempt, pg_catalog.jsonb_build_object('http_status', p_answer.http_status)
    );
    v_delay := greatest(v_delay, aivedio._backoff(v_rare, v_rare, 0));
    v_alarms := v_alarms || 'poll_not_found'::text;
  end if;

  if v_attempt.terminal_at is not null then
    v_delay := aivedio._case_delay(v_attempt);
  elsif v_attempt.deadline_at < v_now then
    perform aivedio._note_case(
      'overdue', v_attempt, pg_catalog.jsonb_build_object('deadline_at', v_attempt.deadline_at)
    );
    v_delay := greatest(v_delay, aivedio._backoff(v_rare, v_rare, 0));
    v_alarms := v_alarms || 'attempt_overdue'::text;
  end if;

  if p_answer.meaning = 'auth' then
    v_until := aivedio._open_circuit(v_attempt.provider, v_attempt.credential, 'credential_refused');
    v_alarms := v_alarms || 'credential_refused'::text;
  elsif p_answer.meaning in ('retry', 'malformed') then
    v_until := aivedio._count_fault(v_attempt.provider, v_attempt.credential, p_profile, p_answer.meaning);
    if v_until is not null then
      v_alarms := v_alarms || 'circuit_open'::text;
    end if;
  elsif p_answer.meaning = 'throttled' then
    v_until := aivedio._throttle(v_attempt.provider, p_profile, p_answer.retry_after_s);
  else
    -- Also "no such job" and an unknown word come from a provider that works.
    perform aivedio._note_success(v_attempt.provider, v_attempt.credential);
  end if;

  if p_answer.meaning in ('malformed', 'refused') then
    v_alarms := v_alarms || ('poll_' || p_answer.meaning);
  end if;

  -- A hint that came while the question was under way may tell of something newer than the answer.
  if v_attempt.hinted_at > v_attempt.poll_lease_until - v_lease and v_attempt.terminal_at is null then
    v_delay := least(v_delay, greatest(v_attempt.hinted_at + v_rest, v_now) - v_now);
  end if;

  update aivedio.task_attempts as attempt
  set poll_lease_until = null,
      leased_by        = null,
      last_polled_at   = v_now,
      poll_count       = attempt.poll_count + 1,
      unchanged_polls  = attempt.unchanged_polls + (v_seen and p_result.event_id is null)::integer,
      throttled_polls  = attempt.throttled_polls + (p_answer.meaning = 'throttled')::integer,
      malformed_polls  = case
        when p_answer.meaning = 'malformed' then attempt.malformed_polls + 1
        when v_seen then 0
        else attempt.malformed_polls
      end,
      poll_failures    = v_failures,
      poll_answer      = null,
      seen_at          = case when v_seen then v_now else attempt.seen_at end,
      next_poll_at     = case
        when v_delay is not null then greatest(v_now + v_delay, v_until + aivedio._backoff(1, 1, 0))
      end,
      poll_first       = aivedio._goes_first(v_attempt),
      updated_at       = v_now
  where attempt.id = p_attempt;

  for v_alarm in
    select distinct raised.kind from pg_catalog.unnest(v_alarms) as raised (kind) order by raised.kind
  loop
    perform aivedio._raise_alarm(
      v_alarm, v_attempt.provider,
      pg_catalog.jsonb_build_object(
        'attempt_id', p_attempt, 'http_status', p_answer.http_status, 'detail', p_answer.detail
      )
    );
  end loop;

  if p_result.verdict = 'unknown_word' then
    perform aivedio._alarm_word(p_answer.observation);
  end if;
  return v_result;
end;
$_reschedule_poll$;

comment on function aivedio._reschedule_poll is
  'Stage 20: count a poll, free its lease and schedule the next one; answers the task as it then stands.';
