-- Stage 90: a case is closed with what, who and why, and the decision is carried out.
begin;
\ir support/fixtures.sql
select plan(13);

create function pg_temp.open(p_kind text, p_task text)
returns uuid
language sql
as $open$
  select aivedio._open_case(p_kind, attempt.id::text, attempt, null, '{}')
  from aivedio.task_attempts as attempt where attempt.task_id = fixture.id(p_task);
$open$;

create function pg_temp.resolve(p_task text, p_resolution text, p_why text default 'asked the provider')
returns text
language sql
as $resolve$
  select aivedio.resolve_case(known.id, p_resolution, 'ops@example.com', p_why)
  from aivedio.reconciliation_cases as known where known.task_id = fixture.id(p_task);
$resolve$;

select fixture.job('lost', 'submitting', p_attempt_status => 'submit_unknown');
select fixture.job('slow', 'running');
select fixture.job('contradicted', 'provider_succeeded');
select pg_temp.open('submit_unknown', 'lost'), pg_temp.open('overdue', 'slow');
select aivedio.apply_observation(fixture.observation(fixture.id('attempt of contradicted'), 'failed'));

select throws_ok($$ select pg_temp.resolve('lost', 'failed', '') $$, 'VC413', null, 'not without a reason');
select throws_ok($$ select pg_temp.resolve('lost', 'ignored') $$, 'VC904', null, 'not with a word that means nothing');
select throws_ok($$ select pg_temp.resolve('contradicted', 'failed') $$, 'VC904', null, 'a contradiction fails nobody');
select throws_ok($$ select aivedio.resolve_case(fixture.id('nothing'), 'kept', 'me', 'why') $$, 'VC903', null, 'a case must exist');

select is(pg_temp.resolve('lost', 'failed'), 'applied', 'a lost submission can be given up');
select results_eq(
  $$ select task.status, task.error_code from aivedio.generation_tasks as task where task.id = fixture.id('lost') $$,
  $$ values ('failed', 'submit_unknown') $$,
  'its task fails with a public code'
);
select is(pg_temp.resolve('lost', 'failed'), 'duplicate', 'once');
select is(
  (aivedio.start_attempt(fixture.id('tenant'), fixture.id('project'), fixture.id('lost'), 'ops', 'try again')).verdict, 'applied',
  'and can be started again'
);

select is(pg_temp.resolve('slow', 'failed'), 'applied', 'so can an overdue job');
select is((select task.error_code from aivedio.generation_tasks as task where task.id = fixture.id('slow')), 'timed_out', 'with its own code');

select is(pg_temp.resolve('contradicted', 'kept'), 'applied', 'a contradiction can be settled in favour of the first end');
select is(
  (select attempt.next_poll_at from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of contradicted')), null,
  'then the provider is asked no more'
);
select is(
  (select count(*) from aivedio.operator_actions as action where action.action = 'resolve_case'), 3::bigint,
  'each decision is audited'
);

select finish();
rollback;
