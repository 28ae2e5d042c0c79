/*
 * Stage 20 · poll · claim_submits
 *
 * Hands out attempts that wait for submission, each at most once: "submitting" is committed before the provider
 * is called. One whose lease ran out may have reached the provider, so it is never handed out again; it becomes
 * submit_unknown, with a case. A claim is a command: chosen without locks, locked in order, looked at again.
 * While a credential's circuit is open its submissions wait; when it is due for a probe, one goes.
 *
 * The callback URL carries a fresh random token, of which only the SHA-256 hash of its text is kept.
 *
 * Called by   edge/intake/submit.py, as aivedio_submit
 * Writes      aivedio.task_attempts; what _emit writes; for lost leases a case and an alarm; aivedio.provider_circuits
 * Locks       one claimer at a time (advisory); project streams → tasks → attempts → cases → circuits → alarms
 */
create or replace function aivedio.claim_submits(
  p_worker        text,
  p_limit         integer,
  p_callback_base text
)
returns setof aivedio.provider_request
language plpgsql
volatile
security definer  -- aivedio_submit may claim without writing tables
set search_path = ''
as $claim_submits$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_lease   constant interval := pg_catalog.make_interval(secs => aivedio._setting('submit_lease_s')::double precision);
  v_due     uuid[];
  v_lost    uuid[];
  v_tasks   uuid[] := '{}'::uuid[];
  v_sent    uuid[] := '{}'::uuid[];
  v_attempt aivedio.task_attempts;
begin
  if not pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtext('aivedio_claim_submits'), 0) then
    return;
  end if;

  v_due := aivedio._choose_submits(v_now, p_limit);
  v_lost := array(
    select attempt.id
    from aivedio.task_attempts as attempt
    where attempt.submit_state = 'sent'
      and attempt.submit_lease_until < v_now
    order by attempt.submit_lease_until
    limit p_limit
  );
  perform aivedio._lock_attempts(v_due || v_lost);

  for v_attempt in
    select attempt.*
    from aivedio.task_attempts as attempt
    where attempt.id = any (v_due)
      and attempt.submit_state = 'due'
    order by attempt.created_at
  loop
    v_tasks := v_tasks || v_attempt.task_id;
    if aivedio._may_submit(v_attempt) then
      return next aivedio._send_submit(v_attempt, p_worker, p_callback_base);
      v_sent := v_sent || v_attempt.id;
    end if;
  end loop;

  for v_attempt in
    select attempt.*
    from aivedio.task_attempts as attempt
    where attempt.id = any (v_lost)
      and attempt.submit_state = 'sent'
      and attempt.submit_lease_until < v_now
    order by attempt.id
  loop
    perform aivedio._lose_submit(v_attempt, 'the lease ran out');
  end loop;
  if v_sent <> '{}' then
    perform aivedio._probe_circuits(v_sent, v_now + v_lease);
  end if;
  perform aivedio._alarm_lost_submits(v_lost);

  perform aivedio._ring_outbox(v_tasks);
end;
$claim_submits$;

comment on function aivedio.claim_submits is
  'Stage 20: attempts to submit now, as complete requests, each at most once; lost leases become submit_unknown.';

grant execute on function aivedio.claim_submits to aivedio_submit;
