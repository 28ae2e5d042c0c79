-- Stage 20: attempts of a provider that answers no polls are never scheduled for one, whatever happens to them.
begin;
\ir support/fixtures.sql
select plan(14);

select aivedio.define_provider(
  'mute', (select provider.effective || '{"poll": null}' from aivedio.providers as provider where provider.name = 'replicate')
);

create function pg_temp.job(p_name text, p_status text, p_attempt_status text default null)
returns void
language sql
as $job$
  select fixture.task(p_name, p_status, p_provider => 'mute');
  select fixture.attempt(p_name, 'attempt of ' || p_name, coalesce(p_attempt_status, p_status), p_provider_task_id => 'job-' || p_name);
$job$;

create function pg_temp.scheduled()
returns text
language sql
as $scheduled$
  select string_agg(attempt.trace_id, ' ') from aivedio.task_attempts as attempt where attempt.next_poll_at is not null;
$scheduled$;

create function pg_temp.see(p_name text, p_status text)
returns text
language sql
as $see$
  select (aivedio.apply_observation(fixture.observation(fixture.id('attempt of ' || p_name), p_status))).verdict;
$see$;

-- A submission that is accepted, by its answer and by a report.
select pg_temp.job('a', 'created'), pg_temp.job('b', 'created');
select count(*) from aivedio.claim_submits('worker', 10, 'https://us.example');
select is(
  (aivedio.settle_submit(fixture.id('attempt of a'), 1, '{"kind": "response", "http_status": 201, "body": {"id": "p-a"}}')).verdict, 'applied',
  'a submission is accepted'
);
select is(pg_temp.scheduled(), null, 'nobody will ask');

-- A callback that overtakes the answer, with a status and without one that is known.
select is(pg_temp.see('b', 'running'), 'applied', 'a callback is first');
select is(pg_temp.scheduled(), null, 'nobody will ask');
select pg_temp.job('c', 'submitting');
select is(pg_temp.see('c', null), 'unknown_word', 'or says something unknown');
select is(pg_temp.scheduled(), null, 'nobody will ask');

-- A contradiction, a hint, a cancellation.
select pg_temp.job('d', 'provider_succeeded', 'succeeded');
select is(pg_temp.see('d', 'failed'), 'conflict', 'two ends contradict');
select is(pg_temp.scheduled(), null, 'nobody will ask');
select pg_temp.job('e', 'running');
select aivedio._hint_poll(fixture.id('attempt of e'));
select is(pg_temp.scheduled(), null, 'a hint makes nobody ask');
select pg_temp.job('f', 'running');
select aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id('f'), fixture.id('user'));
select is((select count(*) from aivedio.claim_cancels('worker')), 1::bigint, 'a cancel is sent');
select is(
  (aivedio.settle_cancel(fixture.id('attempt of f'), 1, '{"kind": "response", "http_status": 200, "body": {}}')).verdict, 'applied', 'and confirmed'
);
select is(pg_temp.scheduled(), null, 'nobody will ask');

-- What was scheduled before the profile lost its polls keeps nobody awake.
update aivedio.task_attempts set next_poll_at = aivedio._clock() where id = fixture.id('attempt of f');
select is(aivedio.next_poll_in(), null, 'the poll edge may rest');
select is_empty($$ select * from aivedio.claim_polls('worker') $$, 'there is nothing to ask');

select finish();
rollback;
