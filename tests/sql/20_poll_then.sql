-- Stage 20: a poll of two requests: the first answer is kept for the second, and nothing is lost between them.
begin;
\ir support/fixtures.sql
select plan(41);

create function pg_temp.at(p_after interval)
returns void
language sql
as $at$
  select set_config('aivedio.now', (timestamptz '2026-06-24 03:10:00+00' + p_after)::text, true);
$at$;

create function pg_temp.running(p_name text, p_provider text, p_model text)
returns void
language plpgsql
as $running$
begin
  perform fixture.task(p_name, 'running', p_provider => p_provider, p_model => p_model);
  perform fixture.attempt(
    p_name, p_name, 'running', p_provider_task_id => 'r-' || p_name, p_next_poll_at => aivedio._clock() - interval '1 s'
  );
end;
$running$;

-- What is claimed next, a second later, so that its buckets have filled.
create function pg_temp.claim()
returns text
language sql
as $claim$
  select set_config('aivedio.now', (aivedio._clock() + interval '1 second')::text, true);
  select string_agg(request.method || ' ' || request.url, ', ') from aivedio.claim_polls('worker', 10) as request;
$claim$;

create function pg_temp.settle(p_name text, p_body jsonb, p_status integer default 200)
returns text
language sql
as $settle$
  select concat_ws(' ', answer.verdict, answer.status)
  from aivedio.settle_poll(
    fixture.id(p_name), (select attempt.lease_token from aivedio.task_attempts as attempt where attempt.id = fixture.id(p_name)),
    jsonb_build_object('kind', 'response', 'http_status', p_status, 'body', p_body)
  ) as answer;
$settle$;

create function pg_temp.attempt(p_name text)
returns aivedio.task_attempts
language sql
as $attempt$
  select attempt.* from aivedio.task_attempts as attempt where attempt.id = fixture.id(p_name);
$attempt$;

-- The status, then the result.
select pg_temp.running('a', 'fal', 'fal-ai/minimax/video-01/image-to-video');
select is(pg_temp.claim(), 'GET https://queue.fal.run/fal-ai/minimax/requests/r-a/status', 'the status is asked for under owner and app');
select is(
  pg_temp.settle('a', '{"status": "COMPLETED", "request_id": "r-a", "response_url": "https://evil.example/requests/r-a", "status_url": "http://169.254.169.254/"}'),
  'duplicate running', 'done: but what it made is not known yet'
);
select results_eq(
  $$
    select
      (given).status, (given).poll_answer ->> 'status', (given).next_poll_at = aivedio._clock(), (given).poll_lease_until,
      (given).poll_count, (given).poll_failures
    from pg_temp.attempt('a') as given
  $$,
  $$ values ('running', 'COMPLETED', true, null::timestamptz, 1, 0) $$,
  'the answer is kept, and the second request is due at once'
);
update aivedio.poll_quotas set tokens = 0, refilled_at = aivedio._clock() where level = 'provider' and key = 'fal';
select is_empty($$ select * from aivedio.claim_polls('worker', 10) $$, 'within the quota, like any poll');
select is(pg_temp.claim(), 'GET https://queue.fal.run/fal-ai/minimax/requests/r-a', 'the result is asked for at the profile''s host, wherever the answer pointed');
select is(pg_temp.settle('a', '{"video": {"url": "https://v3.fal.media/a.mp4"}}'), 'applied provider_succeeded', 'with it the job has succeeded');
select results_eq(
  $$ select output.url from aivedio.attempt_outputs as output where output.attempt_id = fixture.id('a') $$,
  array['https://v3.fal.media/a.mp4'], 'its output is kept'
);
select is((pg_temp.attempt('a')).poll_answer, null, 'the first answer is not');
-- A result that is refused is the job's failure, with the provider's own words.
select pg_temp.running('b', 'fal', 'fal-ai/veo3');
select pg_temp.claim();
select pg_temp.settle('b', '{"status": "COMPLETED", "request_id": "r-b"}');
select pg_temp.claim();
select is(pg_temp.settle('b', '{"detail": [{"msg": "no face found in the image"}]}', 422), 'applied failed', '422 on the result: failed');
select is((pg_temp.attempt('b')).error_detail, 'no face found in the image', 'and why');

-- A gateway that fails is not the job's failure: it begins anew.
select pg_temp.running('c', 'fal', 'fal-ai/veo3');
select pg_temp.claim();
select pg_temp.settle('c', '{"status": "COMPLETED", "request_id": "r-c"}');
select pg_temp.claim();
select is(pg_temp.settle('c', null, 504), 'duplicate running', '504 on the result changes nothing');
select results_eq(
  $$ select (given).status, (given).poll_answer, (given).poll_failures, (given).next_poll_at > aivedio._clock() from pg_temp.attempt('c') as given $$,
  $$ values ('running', null::jsonb, 1, true) $$, 'it counts as a failed poll'
);
select pg_temp.at('10 minutes');
select is(pg_temp.claim(), 'GET https://queue.fal.run/fal-ai/veo3/requests/r-c/status', 'the next poll asks for the status first');
select pg_temp.settle('c', '{"status": "COMPLETED", "request_id": "r-c"}');
select pg_temp.claim();
select is(pg_temp.settle('c', '[]'), 'duplicate running', 'a result without an output says nothing');
select is((pg_temp.attempt('c')).malformed_polls, 1, 'and counts as malformed');

-- A worker that dies between the two.
select pg_temp.running('d', 'fal', 'fal-ai/veo3');
select pg_temp.claim();
select pg_temp.settle('d', '{"status": "COMPLETED", "request_id": "r-d"}');
select pg_temp.claim();
select pg_temp.at('12 minutes');
select matches(pg_temp.claim(), 'GET https://queue.fal.run/fal-ai/veo3/requests/r-d(,|$)', 'the second request is handed out again when its lease is over');
select is(
  (select verdict from aivedio.settle_poll(fixture.id('d'), 2, '{"kind": "response", "http_status": 200, "body": {}}')), 'stale_attempt', 'the one that was dead is not heard'
);
select is(pg_temp.settle('d', '{"video": {"url": "https://v3.fal.media/d.mp4"}}'), 'applied provider_succeeded', 'the new one is');

-- A callback comes between the two.
select pg_temp.running('e', 'fal', 'fal-ai/veo3');
select pg_temp.claim();
select pg_temp.settle('e', '{"status": "COMPLETED", "request_id": "r-e"}');
select pg_temp.claim();
select verdict from aivedio.apply_observation(row(
  'fal', null, null, null, null, fixture.id('e'), null, null, null, aivedio._clock(), 'succeeded', 'OK', null, null, null, null,
  null, 'webhook', null, null, null, null
)::aivedio.provider_observation) \gset
select is(pg_temp.settle('e', '{"video": {"url": "https://v3.fal.media/e.mp4"}}'), 'duplicate provider_succeeded', 'the result then says the same again');

select is((pg_temp.attempt('e')).poll_answer, null, 'and nothing is kept');
select pg_temp.running('m', 'fal', 'fal-ai/veo3');
select pg_temp.claim();
select pg_temp.settle('m', '{"status": "COMPLETED", "request_id": "r-m"}');
select verdict from aivedio.apply_observation(row(
  'fal', null, null, null, null, fixture.id('m'), null, null, null, aivedio._clock(), 'failed', 'ERROR', null, null, null, null,
  null, 'webhook', null, null, null, null
)::aivedio.provider_observation) \gset
select results_eq(
  $$ select (given).status, (given).poll_answer, (given).next_poll_at from pg_temp.attempt('m') as given $$,
  $$ values ('failed', null::jsonb, null::timestamptz) $$, 'a callback that ends the job before the second request makes it needless'
);

-- What needs no second request, and what cannot have one.
select pg_temp.running('f', 'fal', 'fal-ai/veo3');
select pg_temp.claim();
select is(pg_temp.settle('f', '{"status": "IN_QUEUE", "request_id": "r-f"}', 202), 'stale_status running', '202: a status, and no result');
select is((pg_temp.attempt('f')).poll_answer, null, 'nothing is kept');
select pg_temp.at('20 minutes');
select pg_temp.claim();
select is(pg_temp.settle('f', '{"status": "COMPLETED", "request_id": "r-f", "error": "boom"}'), 'applied failed', 'an error beside COMPLETED ends it without a second request');

select pg_temp.running('g', 'fal', 'fal-ai/veo3');
select pg_temp.claim();
select is(
  pg_temp.settle('g', jsonb_build_object('status', 'COMPLETED', 'request_id', 'r-g', 'logs', repeat('x', 70000))), 'duplicate running', 'an answer that is too large to keep'
);
select is((pg_temp.attempt('g')).malformed_polls, 1, 'is malformed');

-- A result that is not there is a case once the grace is over, like a status that is not.
select pg_temp.running('h', 'fal', 'fal-ai/veo3');
update aivedio.task_attempts set submitted_at = aivedio._clock() - interval '1 hour' where id = fixture.id('h');
select pg_temp.claim();
select pg_temp.settle('h', '{"status": "COMPLETED", "request_id": "r-h"}');
select pg_temp.claim();
select pg_temp.settle('h', '{"detail": "not found"}', 404);
select results_eq(
  $$ select kind from aivedio.reconciliation_cases as known where known.attempt_id = fixture.id('h') $$, array['not_found'], '404 on the result: a case'
);

-- An answer that was kept while the profile changed.
select pg_temp.running('i', 'fal', 'fal-ai/veo3');
select pg_temp.claim();
select pg_temp.settle('i', '{"status": "COMPLETED", "request_id": "r-i"}');
select aivedio.override_provider('fal', '{"poll": {"then": null}}', 'dba', 'a test');
select is(pg_temp.claim(), 'GET https://queue.fal.run/fal-ai/veo3/requests/r-i/status', 'without a second request in the profile the first is made');
select is(pg_temp.settle('i', '{"status": "IN_PROGRESS", "request_id": "r-i"}'), 'duplicate running', 'and read as such');
select is((pg_temp.attempt('i')).poll_answer, null, 'the kept answer is gone');
select aivedio.override_provider('fal', '{}', 'dba', 'a test');

-- A file whose URL is asked for.
select pg_temp.running('j', 'minimax', 'MiniMax-Hailuo-02');
select is(pg_temp.claim(), 'GET https://api.minimax.io/v1/query/video_generation?task_id=r-j', 'the status');
select pg_temp.settle('j', '{"task_id": "r-j", "status": "Success", "file_id": "9/9", "base_resp": {"status_code": 0}}');
select is(pg_temp.claim(), 'GET https://api.minimax.io/v1/files/retrieve?file_id=9%2F9', 'the file that it names');
select is(
  pg_temp.settle('j', '{"file": {"download_url": "https://cdn.example/j.mp4"}, "base_resp": {"status_code": 0}}'), 'applied provider_succeeded', 'success'
);
select pg_temp.running('k', 'minimax', 'MiniMax-Hailuo-02');
select pg_temp.claim();
select pg_temp.settle('k', '{"task_id": "r-k", "status": "Success", "file_id": "9", "base_resp": {"status_code": 0}}');
select pg_temp.claim();
select is(pg_temp.settle('k', '{"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}'), 'duplicate running', 'the second request is over a limit');
select results_eq(
  $$ select (given).throttled_polls, (given).poll_failures, (given).status, (given).poll_answer from pg_temp.attempt('k') as given $$,
  $$ values (1, 0, 'running', null::jsonb) $$, 'the provider''s bucket waits, the attempt has not failed'
);
select is(
  (select count(*) from aivedio.poll_quotas where level = 'provider' and key = 'minimax' and blocked_until > aivedio._clock()), 1::bigint, 'it does'
);

-- A code in a 200 that ends nothing.
select pg_temp.running('l', 'dashscope', 'wan2.5-t2v-preview');
select pg_temp.claim();
select is(pg_temp.settle('l', '{"output": {"task_id": "r-l", "task_status": "UNKNOWN"}}'), 'duplicate running', 'UNKNOWN is no status');
select results_eq(
  $$ select (given).status, (given).poll_failures, (given).seen_at from pg_temp.attempt('l') as given $$, $$ values ('running', 0, null::timestamptz) $$, 'while the job is fresh it is no failure'
);
select pg_temp.at('30 minutes');
select pg_temp.claim();
select pg_temp.settle('l', '{"output": {"task_id": "r-l", "task_status": "UNKNOWN"}}');
select results_eq(
  $$ select kind from aivedio.reconciliation_cases as known where known.attempt_id = fixture.id('l') $$, array['not_found'], 'later it is a case'
);
select pg_temp.at('60 minutes');
select pg_temp.claim();
select pg_temp.settle('l', '{"output": {"task_id": "r-l", "task_status": "RUNNING"}}');
select is((pg_temp.attempt('l')).seen_at, aivedio._clock(), 'a status that is understood is a job that was seen');
select is((pg_temp.attempt('k')).seen_at, null, 'a refusal is not');

select finish();
rollback;
