-- Stage 20: where a cancel destroys what is finished, it is sent on a poll's word of a moment ago and never on a guess.
begin;
\ir support/fixtures.sql
select plan(38);

create function pg_temp.after(p_seconds numeric)
returns void
language sql
as $after$
  select set_config('aivedio.now', (aivedio._clock() + make_interval(secs => p_seconds))::text, true);
$after$;

-- A job that was seen long ago, and is not wanted any more.
create function pg_temp.unwanted(p_name text, p_provider text, p_status text default 'running')
returns void
language plpgsql
as $unwanted$
begin
  perform fixture.task(p_name, p_status, p_provider => p_provider, p_model => 'm/n');
  perform fixture.attempt(
    p_name, p_name, p_status, p_provider_task_id => 'r-' || p_name, p_next_poll_at => aivedio._clock() + interval '4 minutes'
  );
  update aivedio.task_attempts
  set seen_at = aivedio._clock() - interval '11 s', submitted_at = aivedio._clock() - interval '1 h'
  where id = fixture.id(p_name);
  perform aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id(p_name), fixture.id('user'));
end;
$unwanted$;

create function pg_temp.cancels()
returns text
language sql
as $cancels$
  select string_agg(request.method || ' ' || request.url, ', ') from aivedio.claim_cancels('worker', 10) as request;
$cancels$;

create function pg_temp.poll(p_name text, p_body jsonb, p_status integer default 200)
returns text
language plpgsql
as $poll$
declare
  v_request aivedio.provider_request;
begin
  select request.* into v_request
  from aivedio.claim_polls('worker', 10) as request
  where request.attempt_id = fixture.id(p_name);
  return (aivedio.settle_poll(
    v_request.attempt_id, v_request.lease_token, jsonb_build_object('kind', 'response', 'http_status', p_status, 'body', p_body)
  )).status;
end;
$poll$;

create function pg_temp.told(p_name text, p_status integer)
returns text
language sql
as $told$
  select (aivedio.settle_cancel(
    attempt.id, attempt.cancel_token, jsonb_build_object('kind', 'response', 'http_status', p_status, 'body', '{}'::jsonb)
  )).verdict
  from aivedio.task_attempts as attempt
  where attempt.id = fixture.id(p_name);
$told$;

create function pg_temp.state(p_name text)
returns text
language sql
as $state$
  select concat_ws(' ', attempt.cancel_state, attempt.cancel_tries) from aivedio.task_attempts as attempt where attempt.id = fixture.id(p_name);
$state$;

-- Asked first, then told.
select pg_temp.unwanted('a', 'runway');
select is(pg_temp.cancels(), null, 'what was seen long ago is not canceled on a guess');
select is(pg_temp.state('a'), 'due 0', 'that was no try');
select is(
  (select attempt.next_poll_at from aivedio.task_attempts as attempt where attempt.id = fixture.id('a')), aivedio._clock(), 'the job is polled now'
);
select is(pg_temp.cancels(), null, 'and until then nothing is due');
select pg_temp.after(1);
select is(pg_temp.poll('a', '{"id": "r-a", "status": "RUNNING", "progress": 0.5}'), 'cancel_requested', 'it runs');
select pg_temp.after(1);
select is(pg_temp.cancels(), 'DELETE https://api.dev.runwayml.com/v1/tasks/r-a', 'now it is told');
select is(pg_temp.told('a', 204), 'applied', 'and confirms');
select pg_temp.after(5);
select is(pg_temp.poll('a', '{"error": "not found"}', 404), 'canceled', 'gone after our own cancel: canceled');

-- Finished meanwhile: the result is not destroyed.
select pg_temp.unwanted('b', 'runway');
select pg_temp.cancels();
select pg_temp.after(1);
select is(pg_temp.poll('b', '{"id": "r-b", "status": "SUCCEEDED", "output": ["https://cdn.example/b.mp4"]}'), 'provider_succeeded', 'it was finished');
select pg_temp.after(60);
select is(pg_temp.cancels(), null, 'nothing is ever told');
select results_eq(
  $$ select output.url from aivedio.attempt_outputs as output where output.attempt_id = fixture.id('b') $$, array['https://cdn.example/b.mp4'], 'the result is kept'
);

-- Seen a moment ago by a poll.
select pg_temp.unwanted('c', 'runway', 'queued');
update aivedio.task_attempts set seen_at = aivedio._clock() - interval '9 s' where id = fixture.id('c');
select is(pg_temp.cancels(), 'DELETE https://api.dev.runwayml.com/v1/tasks/r-c', 'what was seen a moment ago need not be polled');

-- A provider that does not answer.
select pg_temp.unwanted('d', 'runway');
select pg_temp.cancels();
select pg_temp.after(2);
select pg_temp.poll('d', '"<html>"', 502);
select is(pg_temp.cancels(), null, 'a poll that failed tells nothing');
select is(pg_temp.state('d'), 'due 0', 'the wish stays');
select pg_temp.after(2);
select is(pg_temp.cancels(), null, 'however often');
select is(
  (select attempt.next_poll_at > aivedio._clock() + interval '4 s' from aivedio.task_attempts as attempt where attempt.id = fixture.id('d')), true,
  'and nobody polls it more often for that'
);

-- A poll that tells nothing is not repeated at once.
select pg_temp.unwanted('k', 'runway');
select pg_temp.cancels();
select pg_temp.after(1);
select pg_temp.poll('k', '{"error": "slow down"}', 429);
update aivedio.poll_quotas set blocked_until = null where level = 'provider' and key = 'runway';
update aivedio.task_attempts set next_poll_at = last_polled_at + interval '1 hour' where id = fixture.id('k');
select pg_temp.after(3);
select is(pg_temp.cancels(), null, 'a job that nobody has seen is asked about again');
select is(
  (select attempt.next_poll_at = attempt.last_polled_at + interval '5 s' from aivedio.task_attempts as attempt where attempt.id = fixture.id('k')), true,
  'no sooner than a hint could have it'
);
delete from aivedio.reconciliation_cases;
update aivedio.task_attempts set cancel_state = 'given_up' where id = fixture.id('k');

-- 404 without a cancel of ours is a case.
select pg_temp.after(600);
select is(pg_temp.poll('d', '{"error": "not found"}', 404), 'cancel_requested', 'gone, and we have not canceled it');
select results_eq(
  $$ select kind from aivedio.reconciliation_cases as known where known.attempt_id = fixture.id('d') $$, array['not_found'], 'that is a case'
);

-- A cancel whose answer was lost.
select pg_temp.unwanted('e', 'runway');
update aivedio.task_attempts set seen_at = aivedio._clock() where id = fixture.id('e');
select is(pg_temp.cancels(), 'DELETE https://api.dev.runwayml.com/v1/tasks/r-e', 'told');
select (aivedio.settle_cancel(attempt.id, attempt.cancel_token, '{"kind": "timeout", "error": "ReadTimeout"}')).verdict
from aivedio.task_attempts as attempt
where attempt.id = fixture.id('e') \gset
select is(pg_temp.state('e'), 'due 1', 'no answer: again, later');
update aivedio.task_attempts set next_poll_at = aivedio._clock() where id = fixture.id('e');
select pg_temp.after(1);
select is(pg_temp.poll('e', '{"error": "not found"}', 404), 'canceled', 'and gone: it had arrived');

-- The same for a job so fresh that it may only not be found yet.
select pg_temp.unwanted('f', 'runway');
update aivedio.task_attempts set seen_at = aivedio._clock(), submitted_at = aivedio._clock() where id = fixture.id('f');
select pg_temp.cancels();
update aivedio.task_attempts set next_poll_at = aivedio._clock() where id = fixture.id('f');
select pg_temp.after(1);
select is(pg_temp.poll('f', '{"error": "not found"}', 404), 'cancel_requested', 'a fresh job that is not found was perhaps never canceled');

-- Ark cancels what waits, refuses what runs, erases what is finished.
select pg_temp.unwanted('g', 'seedance', 'queued');
select is(pg_temp.cancels(), null, 'a job that waited long ago may be finished now');
select pg_temp.after(1);
select is(pg_temp.poll('g', '{"id": "r-g", "status": "queued"}'), 'cancel_requested', 'it still waits');
select pg_temp.after(1);
select is(pg_temp.cancels(), 'DELETE https://ark.cn-beijing.volces.com/api/v3/contents/generations/tasks/r-g', 'then it is canceled');
select is(pg_temp.told('g', 200), 'applied', 'and confirms');
select pg_temp.after(5);
select is(pg_temp.poll('g', '{"id": "r-g", "status": "cancelled"}'), 'canceled', 'canceled');

select pg_temp.unwanted('h', 'seedance', 'queued');
select pg_temp.cancels();
select pg_temp.after(1);
select is(pg_temp.poll('h', '{"id": "r-h", "status": "running"}'), 'cancel_requested', 'it has begun');
select pg_temp.after(1);
select is(pg_temp.cancels(), null, 'what runs is not canceled');
select is(pg_temp.state('h'), 'given_up 0', 'nor tried again');
select is(
  (select count(*) from aivedio.alarms as alarm where alarm.kind = 'cancel_given_up'), 0::bigint, 'which alarms nobody'
);
select pg_temp.after(30);
select is(pg_temp.poll('h', '{"id": "r-h", "status": "succeeded", "content": {"video_url": "https://ark.example/h.mp4"}}'), 'provider_succeeded', 'the task waits for its end');

-- Where a cancel destroys nothing it is sent at once, and a provider without one is not told.
select pg_temp.unwanted('i', 'fal');
select pg_temp.unwanted('j', 'luma');
select is(pg_temp.cancels(), 'PUT https://queue.fal.run/m/n/requests/r-i/cancel', 'fal is told without being asked');
select is(pg_temp.state('j'), 'unsupported 0', 'Luma is not');
select is(pg_temp.told('i', 400), 'applied', 'fal says that it is too late');
select is(pg_temp.state('i'), 'given_up 1', 'and is not told again');

select finish();
rollback;
