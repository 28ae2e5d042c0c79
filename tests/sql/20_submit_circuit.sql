-- Stage 20: behind an open circuit submissions wait; nothing is sent, nothing is lost, and others go on.
begin;
\ir support/fixtures.sql
select plan(31);

create function pg_temp.at(p_after interval)
returns void
language sql
as $at$
  select set_config('aivedio.now', (timestamptz '2026-06-24 03:10:00+00' + p_after)::text, true);
$at$;

create function pg_temp.claimed(p_limit integer default 10)
returns text
language sql
as $claimed$
  select coalesce(string_agg(claim.name, ' ' order by claim.name), 'nothing')
  from (
    select task.trace_id as name
    from aivedio.claim_submits('worker', p_limit, 'https://us.example') as request
    join aivedio.task_attempts as attempt on attempt.id = request.attempt_id
    join aivedio.generation_tasks as task on task.id = attempt.task_id
  ) as claim;
$claimed$;

create function pg_temp.settle(p_name text, p_outcome jsonb)
returns text
language sql
as $settle$
  select answer.verdict
  from aivedio.task_attempts as attempt
  cross join lateral aivedio.settle_submit(attempt.id, attempt.submit_token, p_outcome) as answer
  where attempt.id = fixture.id('attempt of ' || p_name);
$settle$;

create function pg_temp.circuit()
returns text
language sql
as $circuit$
  select circuit.state from aivedio.provider_circuits as circuit where circuit.provider = 'replicate';
$circuit$;

create function pg_temp.other(p_name text)
returns void
language sql
as $other$
  select fixture.task(p_name, p_provider => 'other');
  select fixture.attempt(p_name, 'attempt of ' || p_name, 'created');
$other$;

select aivedio.define_provider('other', (select provider.effective from aivedio.providers as provider where provider.name = 'replicate'));

-- Opened by a poll: a refused credential, or a provider that is down.
select aivedio._open_circuit('replicate', 'default', 'credential_refused');
select fixture.job('a', 'created'), fixture.job('b', 'created'), fixture.job('c', 'created');
select pg_temp.other('d');
select is(pg_temp.claimed(), 'trace-d', 'behind an open circuit nothing is submitted, and others are');
select results_eq(
  $$ select distinct attempt.status, attempt.submit_state, attempt.submit_tries
     from aivedio.task_attempts as attempt where attempt.provider = 'replicate' $$,
  $$ values ('created', 'due', 0) $$,
  'what waits is as it was'
);
select is(
  (select why #>> '{circuit,state}' from aivedio.why_waiting(fixture.id('a')) as why), 'open', 'and one can see why'
);
select is(
  (select (why #>> '{circuit,retry_at}')::timestamptz > aivedio._clock() from aivedio.why_waiting(fixture.id('a')) as why), true, 'and until when'
);

-- What should be canceled is, whatever the circuit says.
update aivedio.task_attempts set status = 'submitting', known_status = 'submitting' where id = fixture.id('attempt of c');
update aivedio.generation_tasks set status = 'submitting', stage = 'submitting' where id = fixture.id('c');
select is(
  (aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id('c'), fixture.id('user'))).status, 'cancel_requested',
  'somebody cancels what waits'
);
select is(pg_temp.claimed(), 'nothing', 'it is not sent');
select is((select task.status from aivedio.generation_tasks as task where task.id = fixture.id('c')), 'canceled', 'but canceled at once');

-- A probe: one submission, and the others when it was answered.
select pg_temp.at('50 seconds');
select is(pg_temp.claimed(), 'trace-a', 'after its rest the circuit lets one through');
select is(pg_temp.circuit(), 'half_open', 'as a probe');
select is(pg_temp.claimed(), 'nothing', 'one');
select is(pg_temp.settle('a', '{"kind": "response", "http_status": 401, "body": {}}'), 'applied', 'refused again');
select is(pg_temp.circuit(), 'open', 'the circuit stays open, for longer');
select pg_temp.at('60 seconds');
select is(pg_temp.claimed(), 'nothing', 'a moment later there is no probe');
select pg_temp.at('200 seconds');
select isnt(pg_temp.claimed(1), 'nothing', 'the next one comes');
select is(
  (
    select string_agg(pg_temp.settle(replace(attempt.trace_id, 'trace-', ''), '{"kind": "response", "http_status": 201, "body": {"id": "job-1"}}'), ' ')
    from aivedio.task_attempts as attempt
    where attempt.submit_state = 'sent' and attempt.provider = 'replicate'
  ), 'applied', 'and is accepted'
);
select is(pg_temp.circuit(), 'closed', 'an accepted submission closes the circuit');
select isnt(pg_temp.claimed(), 'nothing', 'the others go');

-- A probe that is never answered does not shut the credential for ever.
select aivedio._open_circuit('replicate', 'default', 'credential_refused');
select pg_temp.at('400 seconds');
select fixture.job('e', 'created'), fixture.job('f', 'created');
select is(pg_temp.claimed(), 'trace-e', 'one probe');
select pg_temp.at('519 seconds');
select is(pg_temp.claimed(), 'nothing', 'while its lease lasts no other goes');
select pg_temp.at('521 seconds');
select is(pg_temp.claimed(), 'trace-f', 'then another one');
select is(
  pg_temp.settle('f', '{"kind": "response", "http_status": 422, "body": {"detail": "input.prompt is required"}}'), 'applied', 'a refusal'
);
select is(pg_temp.circuit(), 'closed', 'is an answer as well: the provider works');

-- A provider that is down: each submission whose outcome is unknown is a case, so they stop after some.
update aivedio.providers set effective = jsonb_set(effective, '{poll,circuit_faults}', '3') where name = 'replicate';
select fixture.job('down ' || n, 'created') from generate_series(1, 6) as n;
select is(pg_temp.claimed(2), 'trace-down 1 trace-down 2', 'two are sent');
select pg_temp.settle('down ' || n, '{"kind": "response", "http_status": 502, "body": null}') from generate_series(1, 2) as n;
select is(pg_temp.circuit(), 'closed', 'two faults are no reason');
select is(pg_temp.claimed(1), 'trace-down 3', 'one more');
select pg_temp.settle('down 3', '{"kind": "timeout", "error": "ReadTimeout"}');
select is(pg_temp.circuit(), 'open', 'three are');
select is(
  (select alarm.subject from aivedio.alarms as alarm where alarm.kind = 'circuit_open'), 'replicate:default', 'it is alarmed'
);
select is(pg_temp.claimed(), 'nothing', 'the others wait');

-- A provider that is over its limit works, and its credential is good.
select aivedio._close_circuit('replicate', 'default');
select pg_temp.claimed(3);
select pg_temp.settle('down ' || n, '{"kind": "response", "http_status": 429, "body": {}, "retry_after_s": 60}') from generate_series(4, 6) as n;
select is(pg_temp.circuit(), 'closed', 'too many requests are no fault');

-- However many wait behind one circuit, a batch is full of others.
select aivedio._open_circuit('replicate', 'default', 'credential_refused');
select fixture.job('many ' || n, 'created') from generate_series(1, 30) as n;
select pg_temp.at('522 seconds');
select pg_temp.other('last');
select is(pg_temp.claimed(3), 'trace-last', 'the youngest of an open circuit is not behind the oldest of a shut one');
select is(
  (select count(*) from aivedio.task_attempts as attempt where attempt.submit_state = 'due' and attempt.trace_id like 'trace-many%'),
  30::bigint, 'which all wait'
);

select finish();
rollback;
