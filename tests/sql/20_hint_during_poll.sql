-- Stage 20: a hint that comes while the provider is being asked is not answered by what was asked before it.
begin;
\ir support/fixtures.sql
select plan(3);

select fixture.task('task', 'running');
select fixture.attempt('task', 'attempt', 'running', p_next_poll_at => aivedio._clock());
update aivedio.providers
set effective = jsonb_set(effective, '{poll,interval_s,running}', '[300, 600]')
where name = 'replicate';

create function pg_temp.poll(p_hint boolean)
returns interval
language plpgsql
as $poll$
declare
  v_claim aivedio.provider_request;
begin
  update aivedio.task_attempts set next_poll_at = aivedio._clock(), hinted_at = null;
  select claimed.* into v_claim from aivedio.claim_polls('worker', 1) as claimed;
  if p_hint then
    perform set_config('aivedio.now', (aivedio._clock() + interval '1 second')::text, true);
    perform aivedio._hint_poll(fixture.id('attempt'));
  end if;
  perform aivedio.settle_poll(
    v_claim.attempt_id, v_claim.lease_token,
    '{"kind": "response", "http_status": 200, "body": {"id": "provider-task", "status": "processing"}}'
  );
  return (select attempt.next_poll_at - aivedio._clock() from aivedio.task_attempts as attempt);
end;
$poll$;

select cmp_ok(pg_temp.poll(false), '>', interval '4 minutes', 'a running job is polled seldom here');
select set_config('aivedio.now', '2026-06-24 03:40:00+00', true);
select cmp_ok(pg_temp.poll(true), '<=', interval '5 seconds', 'a hint in the middle brings the next poll soon');
select isnt((select attempt.poll_lease_until from aivedio.task_attempts as attempt), aivedio._clock(), 'the lease is free again');

select finish();
rollback;
