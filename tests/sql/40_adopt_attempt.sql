-- Stage 40: the result of an old attempt is taken only by an explicit, audited call.
begin;
\ir support/fixtures.sql
select plan(17);

create function pg_temp.adopt(p_attempt text, p_reason text default 'the customer likes it')
returns aivedio.applied
language sql
as $adopt$
  select aivedio.adopt_attempt(
    fixture.id('tenant'), fixture.id('project'), fixture.id('task'), fixture.id(p_attempt), 'ops@example.com', p_reason
  );
$adopt$;

select fixture.task('task', 'failed');
select fixture.attempt('task', 'first', 'running', p_provider_task_id => 'one');
select fixture.attempt('task', 'second', 'failed', p_provider_task_id => 'two');
select fixture.job('other', 'failed');

select throws_ok($$ select pg_temp.adopt('first', '') $$, 'VC413', null, 'not without a reason');
select throws_ok($$ select pg_temp.adopt('attempt of other') $$, 'VC404', null, 'not another task''s attempt');
select is((pg_temp.adopt('first')).verdict, 'refused', 'not an attempt that has no result');

select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('first'), 'succeeded'))).verdict, 'stale_attempt',
  'the old attempt succeeds late'
);
select is(
  (select known.state from aivedio.reconciliation_cases as known where known.kind = 'stale_success'), 'open',
  'which is a case'
);

select results_eq(
  $$ select (told).verdict, (told).status from pg_temp.adopt('first') as told $$,
  $$ values ('applied', 'provider_succeeded') $$,
  'its result can be adopted'
);
select results_eq(
  $$ select task.current_attempt_id, task.terminal_at, task.error_code from aivedio.generation_tasks as task
     where task.id = fixture.id('task') $$,
  $$ values (fixture.id('first'), null::timestamptz, null::text) $$,
  'the task goes on with it'
);
select results_eq(
  $$ select known.state, known.resolution, known.resolved_by from aivedio.reconciliation_cases as known where known.kind = 'stale_success' $$,
  $$ values ('resolved', 'adopted', 'ops@example.com') $$,
  'the case is closed'
);
select is((pg_temp.adopt('first')).verdict, 'duplicate', 'once');
select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('first'), 'succeeded', 'poll'))).verdict, 'duplicate',
  'its success is nothing new now'
);
select is(
  aivedio.open_media(
    (select outbox.payload from aivedio.outbox_events as outbox where outbox.aggregate_id = fixture.id('task') order by outbox.id desc limit 1)
  ),
  'opened',
  'and its media is fetched'
);
select is((pg_temp.adopt('second')).verdict, 'refused', 'what has a result takes no other');
select is(
  (select action.reason from aivedio.operator_actions as action where action.action = 'adopt_attempt'),
  'the customer likes it',
  'who and why is kept'
);

-- An attempt that still runs is told to stop when another's result is adopted.
select fixture.task('twice', 'running');
select fixture.attempt('twice', 'late', 'succeeded', p_provider_task_id => 'three');
select fixture.attempt('twice', 'still running', 'running', p_provider_task_id => 'four');
select is(
  (aivedio.adopt_attempt(fixture.id('tenant'), fixture.id('project'), fixture.id('twice'), fixture.id('late'), 'ops', 'good enough')).status,
  'provider_succeeded',
  'a late result may overtake a running attempt'
);
select is(
  (select attempt.cancel_state from aivedio.task_attempts as attempt where attempt.id = fixture.id('still running')), 'due',
  'which is then canceled'
);


-- One that was never submitted is over at once: there is nobody to tell.
select fixture.task('thrice', 'created');
select fixture.attempt('thrice', 'finished', 'succeeded', p_provider_task_id => 'five');
select fixture.attempt('thrice', 'waiting', 'created');
select is(
  (aivedio.adopt_attempt(fixture.id('tenant'), fixture.id('project'), fixture.id('thrice'), fixture.id('finished'), 'ops', 'good enough')).verdict,
  'applied',
  'a result may overtake an attempt that waits for its submission'
);
select results_eq(
  $$ select attempt.status, attempt.submit_state, attempt.cancel_state, attempt.terminal_at is not null
     from aivedio.task_attempts as attempt where attempt.id = fixture.id('waiting') $$,
  $$ values ('canceled', 'withdrawn', null::text, true) $$,
  'which is withdrawn and over'
);

select finish();
rollback;
