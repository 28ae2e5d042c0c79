-- Stage 90: a case is closed with what, who and why, and the decision is carried out.
begin;
\ir support/fixtures.sql
select plan(26);

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

-- "Kept" decides nothing about what is not known.
select throws_ok($$ select pg_temp.resolve('lost', 'kept') $$, 'VC904', null, 'a lost submission is not kept: it is found or given up');
select is(
  (select known.state from aivedio.reconciliation_cases as known where known.task_id = fixture.id('lost')), 'open',
  'its case stays open'
);
select fixture.job('unfound', 'running');
select pg_temp.open('not_found', 'unfound');
select throws_ok($$ select pg_temp.resolve('unfound', 'kept') $$, 'VC904', null, 'nor is a job that the provider does not find');
update aivedio.task_attempts set status = 'succeeded', terminal_at = aivedio._clock() where id = fixture.id('attempt of unfound');
select is(pg_temp.resolve('unfound', 'kept'), 'applied', 'unless it is over');

select is(pg_temp.resolve('lost', 'failed'), 'applied', 'a lost submission can be given up');
select results_eq(
  $$ select task.status, task.error_code from aivedio.generation_tasks as task where task.id = fixture.id('lost') $$,
  $$ values ('failed', 'submit_unknown') $$,
  'its task fails with a public code'
);
select is(pg_temp.resolve('lost', 'failed'), 'duplicate', 'once');
select is(
  (select attempt.submit_state from aivedio.task_attempts as attempt where attempt.task_id = fixture.id('lost')), 'rejected',
  'and is not at the provider, as far as we know'
);
select is(
  (aivedio.start_attempt(fixture.id('tenant'), fixture.id('project'), fixture.id('lost'), 'ops', 'try again')).verdict, 'applied',
  'and can be started again'
);

select is(pg_temp.resolve('slow', 'failed'), 'applied', 'so can an overdue job');
select is((select task.error_code from aivedio.generation_tasks as task where task.id = fixture.id('slow')), 'timed_out', 'with its own code');

-- An overdue job may be given its time again: a case that the next look would open once more is no decision.
select fixture.job('patient', 'running');
update aivedio.task_attempts
set deadline_at = aivedio._clock() - interval '1 hour', provider_task_id = null
where id = fixture.id('attempt of patient');
select is(aivedio._watch_attempts(), 1, 'a job is late');
select is(pg_temp.resolve('patient', 'kept'), 'applied', 'somebody waits for it');
select is(
  (
    select attempt.deadline_at - aivedio._clock() = aivedio._deadline(provider.effective)
    from aivedio.task_attempts as attempt join aivedio.providers as provider on provider.name = attempt.provider
    where attempt.id = fixture.id('attempt of patient')
  ),
  true, 'as long again as its provider''s jobs may take'
);
select is(aivedio._watch_attempts(), 0, 'until then it is no case');

-- What was given up may be running all the same. It costs, and it touches nothing.
select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('attempt of lost'), 'running'))).verdict, 'stale_attempt',
  'the provider speaks of an attempt that was given up and replaced'
);
select results_eq(
  $$ select known.kind, known.state from aivedio.reconciliation_cases as known where known.attempt_id = fixture.id('attempt of lost') order by known.kind $$,
  $$ values ('stale_success', 'open'), ('submit_unknown', 'resolved') $$,
  'it runs and costs: a case'
);
select is(
  (select attempt.submit_state || ' ' || attempt.status from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of lost')),
  'accepted failed', 'the provider has it; that it was given up stays'
);
select aivedio.apply_observation(fixture.observation(fixture.id('attempt of lost'), 'running'));
select is(
  (select jsonb_array_length(known.evidence) from aivedio.reconciliation_cases as known where known.attempt_id = fixture.id('attempt of lost') and known.state = 'open'),
  1, 'said once'
);

select is(pg_temp.resolve('contradicted', 'kept'), 'applied', 'a contradiction can be settled in favour of the first end');
select is(
  (select attempt.next_poll_at from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of contradicted')), null,
  'then the provider is asked no more'
);
select is(
  (select count(*) from aivedio.operator_actions as action where action.action = 'resolve_case'), 5::bigint,
  'each decision is audited'
);

select finish();
rollback;
