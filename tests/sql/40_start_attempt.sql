-- Stage 40: a task is submitted again only by an explicit, audited call, and its old attempt cannot touch it.
begin;
\ir support/fixtures.sql
select plan(17);

create function pg_temp.retry(p_task text, p_key text default null, p_reason text default 'provider had an outage')
returns aivedio.applied
language sql
as $retry$
  select aivedio.start_attempt(
    fixture.id('tenant'), fixture.id('project'), fixture.id(p_task), 'ops@example.com', p_reason, p_key, 'trace-3'
  );
$retry$;

select fixture.job('failed', 'failed');
select fixture.job('running', 'running');
select fixture.job('unknown', 'provider_status_unknown');

select throws_ok(
  $$ select pg_temp.retry('failed', p_reason => ' ') $$,
  'VC413', 'this command needs a reason',
  'no reason, no attempt'
);

select results_eq(
  $$ select (answer).verdict, (answer).status from pg_temp.retry('failed', 'key-1') as answer $$,
  $$ values ('applied', 'created') $$,
  'a failed task starts again'
);

select results_eq(
  $$ select task.attempt_count, task.terminal_at, task.error_code, attempt.submit_state, attempt.start_reason
     from aivedio.generation_tasks as task
     join aivedio.task_attempts as attempt on attempt.id = task.current_attempt_id
     where task.id = fixture.id('failed') $$,
  $$ values (2, null::timestamptz, null::text, 'due', 'provider had an outage') $$,
  'with a second attempt, and without its old end'
);

select is((pg_temp.retry('failed', 'key-1')).verdict, 'duplicate', 'the same key starts nothing more');
select is((pg_temp.retry('failed', 'key-2')).verdict, 'refused', 'an attempt that may still end well is not doubled');
select is((pg_temp.retry('running')).verdict, 'refused', 'nor is a running one');
select is((pg_temp.retry('unknown')).verdict, 'applied', 'one that nobody can reach may be');

update aivedio.task_attempts as attempt
set deadline_at = aivedio._clock() - interval '1 second'
where attempt.id = fixture.id('attempt of running');
select is((pg_temp.retry('running')).verdict, 'applied', 'and so may one that is overdue');

-- The old attempt speaks.
select results_eq(
  $$ select (late).verdict, (late).status, (late).event_id
     from aivedio.apply_observation(fixture.observation(fixture.id('attempt of running'), 'running', p_progress => 90)) as late $$,
  $$ values ('stale_attempt', 'created', null::bigint) $$,
  'progress of the old attempt is not the task''s'
);

select results_eq(
  $$ select (late).verdict, (late).status
     from aivedio.apply_observation(fixture.observation(fixture.id('attempt of running'), 'succeeded')) as late $$,
  $$ values ('stale_attempt', 'created') $$,
  'nor is its success'
);

select results_eq(
  $$ select known.kind, known.state from aivedio.reconciliation_cases as known
     where known.attempt_id = fixture.id('attempt of running') $$,
  $$ values ('stale_success', 'open') $$,
  'but the cost is somebody''s to look at'
);

select results_eq(
  $$ select attempt.status, attempt.next_poll_at from aivedio.task_attempts as attempt
     where attempt.id = fixture.id('attempt of running') $$,
  $$ values ('succeeded', null::timestamptz) $$,
  'the old attempt keeps its own end and is polled no more'
);

select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('attempt of running'), 'failed'))).verdict,
  'stale_attempt',
  'a contradiction of an old attempt is still an old attempt'
);

select is(
  (select attempt.status from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of running')),
  'succeeded',
  'whose first end stays'
);

select is(
  (select count(*) from aivedio.operator_actions as action where action.action = 'start_attempt'),
  3::bigint,
  'three attempts were started by hand, and audited'
);

select is(
  (select count(*) from aivedio.observations as seen where seen.verdict = 'stale_attempt'),
  3::bigint,
  'each refused observation is in the ledger'
);

select throws_ok(
  $$ select aivedio.start_attempt(fixture.id('other'), fixture.id('project'), fixture.id('failed'), 'me', 'why') $$,
  'VC404', 'there is no such task',
  'a foreign task does not exist'
);

select finish();
rollback;
