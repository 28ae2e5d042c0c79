-- Stage 20: an attempt is submitted at most once, and every answer has its meaning.
begin;
\ir support/fixtures.sql
select plan(70);

create function pg_temp.at(p_after interval)
returns void
language sql
as $at$
  select set_config('aivedio.now', (timestamptz '2026-06-24 03:10:00+00' + p_after)::text, true);
$at$;

create function pg_temp.claim()
returns setof aivedio.provider_request
language sql
as $claim$
  select * from aivedio.claim_submits('worker', 10, 'https://us.example/');
$claim$;

create function pg_temp.task_of(p_name text)
returns text
language sql
as $task_of$
  select concat_ws(' ', task.status, 'v' || task.version, task.error_code) from aivedio.generation_tasks as task where task.id = fixture.id(p_name);
$task_of$;

create function pg_temp.attempt_of(p_name text)
returns text
language sql
as $attempt_of$
  select concat_ws(' ', attempt.status, attempt.submit_state, attempt.provider_task_id, attempt.error_class)
  from aivedio.task_attempts as attempt
  where attempt.id = fixture.id('attempt of ' || p_name);
$attempt_of$;

create function pg_temp.settle(p_name text, p_outcome jsonb, p_token bigint default 1)
returns text
language sql
as $settle$
  select concat_ws(' ', answer.verdict, answer.status, case when answer.event_id is not null then 'event' end)
  from aivedio.settle_submit(fixture.id('attempt of ' || p_name), p_token, p_outcome) as answer;
$settle$;

create function pg_temp.accepted(p_id text)
returns jsonb
language sql
as $accepted$
  select jsonb_build_object('kind', 'response', 'http_status', 201, 'body', jsonb_build_object('id', p_id, 'status', 'starting'));
$accepted$;

-- A job that is created and claimed.
create function pg_temp.sent(p_name text)
returns void
language plpgsql
as $sent$
begin
  perform fixture.job(p_name, 'created');
  perform pg_temp.claim();
end;
$sent$;

-- Claiming.
select is_empty($$ select * from pg_temp.claim() $$, 'nothing to submit');
select fixture.job('a', 'created');
create temporary table request as select * from pg_temp.claim();
select is((select count(*) from request), 1::bigint, 'a created task is handed out');
select is(pg_temp.task_of('a'), 'submitting v2', '"submitting" is committed before anything is sent');
select is(pg_temp.attempt_of('a'), 'submitting sent', 'and the attempt is on its way');
select results_eq(
  $$ select source, public_payload ->> 'status' from aivedio.task_events $$, $$ values ('submit', 'submitting') $$, 'there is an event'
);
select matches((select body ->> 'webhook' from request), '^https://us\.example/callbacks/replicate/[A-Za-z0-9_-]{43}$', 'the callback URL carries a token');
select is(
  (select attempt.callback_token_hash from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of a')),
  (select sha256(convert_to(substring(body ->> 'webhook' from '[^/]+$'), 'UTF8')) from request),
  'of which only the hash is kept'
);
select is_empty($$ select * from pg_temp.claim() $$, 'it is handed out once');
select is((select submit_leased_by from aivedio.task_attempts where id = fixture.id('attempt of a')), 'worker', 'who holds it is known');

-- Accepted.
select is(pg_temp.settle('a', pg_temp.accepted('p1')), 'applied submitted event', 'the provider accepts');
select is(pg_temp.task_of('a'), 'submitted v3', 'the task is submitted');
select is(pg_temp.attempt_of('a'), 'submitted accepted p1', 'under the provider''s id');
select is(
  (select next_poll_at - aivedio._clock() between interval '1.6 s' and interval '6 s' from aivedio.task_attempts where id = fixture.id('attempt of a')),
  true, 'the first poll is soon'
);
select is(pg_temp.settle('a', pg_temp.accepted('p1')), 'duplicate submitted', 'the same answer again changes nothing');
select is(pg_temp.settle('a', '{"kind": "timeout", "error": "ReadTimeout"}'), 'duplicate submitted', 'nor does a worse one after it');
select is(pg_temp.settle('a', pg_temp.accepted('p1'), 7), 'stale_attempt submitted', 'an old token is answered and ignored');
select is(
  (select verdict from aivedio.settle_submit(fixture.id('nobody'), 1, pg_temp.accepted('x'))), 'orphan', 'an unknown attempt is no exception'
);

-- Rejected.
select pg_temp.sent('b');
select is(
  pg_temp.settle('b', '{"kind": "response", "http_status": 422, "body": {"detail": "input.prompt is required"}}'), 'applied failed event', 'the provider refuses'
);
select is(pg_temp.task_of('b'), 'failed v3 provider_rejected', 'the task fails with a public code');
select is(pg_temp.attempt_of('b'), 'failed rejected rejected', 'the attempt is over');
select is((select error_detail from aivedio.task_attempts where id = fixture.id('attempt of b')), 'input.prompt is required', 'the provider''s own words are kept, privately');
select is_empty($$ select 1 from aivedio.task_events where public_payload::text like '%input.prompt%' $$, 'no event holds them');
select pg_temp.sent('c');
select pg_temp.settle('c', '{"kind": "response", "http_status": 400, "body": {"detail": "NSFW content"}}');
select is(pg_temp.task_of('c'), 'failed v3 content_refused', 'a rule of the profile finds the better code');
select is(pg_temp.settle('c', pg_temp.accepted('p2')), 'duplicate failed', 'and it is final');

-- Unknown: never submitted again.
select pg_temp.sent(outcome.name) from (values ('d1'), ('d2'), ('d3'), ('d4'), ('d5'), ('d6'), ('d7')) as outcome (name);
select is(pg_temp.settle(outcome.name, outcome.value), 'applied submitting', outcome.why || ': unknown')
from (values
  ('d1', '{"kind": "timeout", "error": "ReadTimeout"}'::jsonb, 'no answer in time'),
  ('d2', '{"kind": "network", "error": "RemoteProtocolError"}', 'a connection that broke'),
  ('d3', '{"kind": "response", "http_status": 502, "body": "Bad Gateway"}', 'a server error'),
  ('d4', '{"kind": "malformed", "http_status": 201, "sample": "<html>"}', 'an answer that is no JSON'),
  ('d5', '{"kind": "response", "http_status": 201, "body": {"status": "starting"}}', 'an answer without an id'),
  ('d6', '{"kind": "too_large", "http_status": 201}', 'an answer that is too large'),
  ('d7', '{"kind": "response", "http_status": 302, "body": null}', 'a redirect')
) as outcome (name, value, why);
select is(pg_temp.task_of('d1'), 'submitting v2', 'the task stays where it is');
select is(pg_temp.attempt_of('d1'), 'submit_unknown unknown', 'the attempt is unknown');
select is_empty($$ select * from pg_temp.claim() $$, 'and is never handed out again');
select is((select count(*) from aivedio.reconciliation_cases where kind = 'submit_unknown' and state = 'open'), 7::bigint, 'each is a case');
select results_eq(
  $$ select subject, count from aivedio.alarms where kind = 'submit_unknown' $$, $$ values ('replicate', 7::bigint) $$, 'and alarmed'
);
select is(pg_temp.settle('d1', '{"kind": "timeout", "error": "ReadTimeout"}'), 'duplicate submitting', 'the same ignorance again changes nothing');

-- ... but found out: by a late answer, or by a callback.
select is(pg_temp.settle('d1', pg_temp.accepted('p-d1')), 'applied submitted event', 'a late answer resolves it');
select is((select state from aivedio.reconciliation_cases where kind = 'submit_unknown' and subject = fixture.id('attempt of d1')::text), 'resolved', 'with its case');
update aivedio.task_attempts set callback_token_hash = sha256(convert_to('d2', 'UTF8')) where id = fixture.id('attempt of d2');
select aivedio.accept_callbacks(array[row(
  0, 'replicate', '{"webhook-id": "m1"}', '{"id": "p-d2", "status": "processing"}', '\x00', 'current', true, sha256(convert_to('d2', 'UTF8')), null, null
)::aivedio.received_callback]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select is(pg_temp.task_of('d2'), 'running v3', 'a callback by its token resolves it');
select is(pg_temp.attempt_of('d2'), 'running accepted p-d2', 'and tells the provider''s id');
select is((select state from aivedio.reconciliation_cases where kind = 'submit_unknown' and subject = fixture.id('attempt of d2')::text), 'resolved', 'its case is resolved');

-- A callback that overtakes the answer: 12.7.4.
select pg_temp.sent('e');
update aivedio.task_attempts set callback_token_hash = sha256(convert_to('e', 'UTF8')) where id = fixture.id('attempt of e');
select aivedio.accept_callbacks(array[row(
  0, 'replicate', '{"webhook-id": "m2"}', '{"id": "p-e", "status": "succeeded", "output": "https://replicate.delivery/e.mp4"}', '\x00', 'current', true, sha256(convert_to('e', 'UTF8')), null, null
)::aivedio.received_callback]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select is(pg_temp.task_of('e'), 'provider_succeeded v3', '12.7.4: the callback is applied');
select is(pg_temp.settle('e', pg_temp.accepted('p-e')), 'duplicate provider_succeeded', '12.7.4: the answer finds nothing left to do');
select is((select next_poll_at from aivedio.task_attempts where id = fixture.id('attempt of e')), null, '12.7.4: what is over is not polled');

-- W23: the callback named another id than the answer does. We poll the one that we were answered.
select pg_temp.sent('f');
update aivedio.task_attempts set callback_token_hash = sha256(convert_to('f', 'UTF8')) where id = fixture.id('attempt of f');
select aivedio.accept_callbacks(array[row(
  0, 'replicate', '{"webhook-id": "m3"}', '{"id": "retry-of-f", "status": "processing"}', '\x00', 'current', true, sha256(convert_to('f', 'UTF8')), null, null
)::aivedio.received_callback]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select is(pg_temp.settle('f', pg_temp.accepted('p-f')), 'applied running', 'W23: only the id is added');
select is(pg_temp.attempt_of('f'), 'running accepted p-f', 'W23: the answered one');

-- An id that another attempt holds.
select pg_temp.sent('g');
select is(pg_temp.settle('g', pg_temp.accepted('p1')), 'conflict submitting', 'the same id twice is a contradiction');
select is(pg_temp.attempt_of('g'), 'submit_unknown unknown', 'this attempt''s outcome stays unknown');
select is((select count(*) from aivedio.reconciliation_cases where kind = 'mapping' and subject = fixture.id('attempt of g')::text), 1::bigint, 'and is a mapping case');

-- Surely not accepted: it waits and is sent again, as the same one submission.
select pg_temp.sent('h');
select is(pg_temp.settle('h', '{"kind": "not_sent", "error": "ConnectError"}'), 'applied submitting', 'a request that never left');
select is(pg_temp.attempt_of('h'), 'submitting due', 'is due again');
select is_empty($$ select * from pg_temp.claim() $$, 'but not at once');
select pg_temp.at('3 seconds');
select is((select count(*) from pg_temp.claim()), 1::bigint, 'after a moment it is handed out again');
select is(pg_temp.settle('h', pg_temp.accepted('p-h'), 1), 'stale_attempt submitting', 'the first worker''s token is void');
select is(pg_temp.settle('h', '{"kind": "response", "http_status": 429, "retry_after_s": 120, "body": {"detail": "throttled"}}', 2), 'applied submitting', 'turned away for its rate');
select pg_temp.at('100 seconds');
select is_empty($$ select * from pg_temp.claim() $$, 'it waits as long as it was told');
select pg_temp.at('200 seconds');
select is((select count(*) from pg_temp.claim()), 1::bigint, 'then it is sent again');
select pg_temp.settle('h', '{"kind": "not_sent", "error": "ConnectError"}', 3);
select pg_temp.at('300 seconds');
select pg_temp.claim();
select pg_temp.settle('h', '{"kind": "not_sent", "error": "ConnectError"}', 4);
select pg_temp.at('400 seconds');
select pg_temp.claim();
select is(pg_temp.settle('h', '{"kind": "not_sent", "error": "ConnectError"}', 5), 'applied failed event', 'five times at most');
select is(pg_temp.task_of('h'), 'failed v3 provider_unreachable', 'then the task fails, and nothing was generated');

-- A lease that runs out.
select pg_temp.at('0');
select pg_temp.sent('i');
select pg_temp.at('119 seconds');
select pg_temp.claim();
select is(pg_temp.attempt_of('i'), 'submitting sent', 'a lease holds for two minutes');
select pg_temp.at('121 seconds');
select is_empty($$ select * from pg_temp.claim() $$, 'after that it is not handed out again');
select is(pg_temp.attempt_of('i'), 'submit_unknown unknown', 'the worker may have sent it: it is unknown');
select is(pg_temp.settle('i', pg_temp.accepted('p-i')), 'applied submitted event', 'unless that worker answers after all');

-- Canceled meanwhile.
select pg_temp.at('0');
select pg_temp.sent('j');
select pg_temp.settle('j', '{"kind": "not_sent", "error": "ConnectError"}');
select aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id('j'), fixture.id('user'));
select pg_temp.at('10 seconds');
select is_empty($$ select * from pg_temp.claim() $$, 'S10: what should be canceled is not sent');
select is(pg_temp.task_of('j') || ', ' || pg_temp.attempt_of('j'), 'canceled v4, canceled withdrawn', 'S10: nothing of it ever reached the provider: it is canceled');

-- An attempt that another one has replaced.
select fixture.job('l', 'failed', p_attempt_status => 'failed');
update aivedio.task_attempts set status = 'created', known_status = 'created', submit_state = 'due', terminal_at = null where id = fixture.id('attempt of l');
select pg_temp.claim();
select is(pg_temp.attempt_of('l'), 'canceled withdrawn provider-l', 'what is no longer wanted is withdrawn');

-- A credential that is refused.
select pg_temp.sent('k');
select is(pg_temp.settle('k', '{"kind": "response", "http_status": 401, "body": {"detail": "Unauthenticated"}}'), 'applied submitting', 'our credential is refused: not the job''s fault');
select results_eq(
  $$ select kind, subject from aivedio.alarms where kind = 'credential_refused' $$, $$ values ('credential_refused', 'replicate:default') $$, 'it is alarmed'
);
select is((select state from aivedio.provider_circuits where provider = 'replicate'), 'open', 'and the circuit opens');

select finish();
rollback;
