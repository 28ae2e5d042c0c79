-- Stage 40: a cancel request is not a cancellation, unless nothing was submitted yet.
begin;
\ir support/fixtures.sql
select plan(24);

create function pg_temp.cancel(p_task text)
returns aivedio.applied
language sql
as $cancel$
  select aivedio.request_cancel(
    fixture.id('tenant'), fixture.id('project'), fixture.id(p_task), fixture.id('user'), 'trace-2'
  );
$cancel$;

-- Every status has its answer.
create temporary table expected (status text, verdict text, becomes text);
insert into expected values
  ('created', 'applied', 'canceled'),
  ('submitting', 'applied', 'cancel_requested'),
  ('submitted', 'applied', 'cancel_requested'),
  ('queued', 'applied', 'cancel_requested'),
  ('running', 'applied', 'cancel_requested'),
  ('provider_status_unknown', 'applied', 'cancel_requested'),
  ('cancel_requested', 'duplicate', 'cancel_requested'),
  ('provider_succeeded', 'refused', 'provider_succeeded'),
  ('processing_media', 'refused', 'processing_media'),
  ('ready', 'refused', 'ready'),
  ('failed', 'refused', 'failed'),
  ('canceled', 'duplicate', 'canceled');

select fixture.job(expected.status, expected.status) from expected;

select results_eq(
  format('select (answer).verdict, (answer).status from pg_temp.cancel(%L) as answer', expected.status),
  format('values (%L, %L)', expected.verdict, expected.becomes),
  format('a task that is %s: %s', expected.status, expected.verdict)
)
from expected;

select results_eq(
  $$ select attempt.status, attempt.submit_state
     from aivedio.task_attempts as attempt where attempt.task_id = fixture.id('created') $$,
  $$ values ('canceled', 'withdrawn') $$,
  'what was never submitted never will be'
);

select results_eq(
  $$ select attempt.status, attempt.cancel_state
     from aivedio.task_attempts as attempt where attempt.task_id = fixture.id('running') $$,
  $$ values ('running', 'due') $$,
  'a running attempt goes on until its provider is told and answers'
);

select is((pg_temp.cancel('running')).verdict, 'duplicate', 'asking twice changes nothing');

-- The project decides about a success that comes too late.
insert into aivedio.project_settings (project_id, cancel_policy) values (fixture.id('project'), 'discard');
select is(
  (pg_temp.cancel('processing_media')).status, 'canceled',
  'a project that discards results may cancel while media is processed'
);

select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('attempt of running'), 'succeeded'))).status, 'canceled',
  'and a success after the request is canceled'
);

select is(
  (select known.kind from aivedio.reconciliation_cases as known where known.attempt_id = fixture.id('attempt of running')),
  'stale_success',
  'with a case, because it was paid for'
);

select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('attempt of submitted'), 'canceled'))).status, 'canceled',
  'a cancellation that was asked for'
);
select is(
  (select task.error_code from aivedio.generation_tasks as task where task.id = fixture.id('submitted')), null,
  'is no error'
);

select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('attempt of queued'), 'failed'))).status, 'failed',
  'only a success is discarded: a failure is one'
);
select is_empty(
  $$ select known.kind from aivedio.reconciliation_cases as known where known.attempt_id = fixture.id('attempt of queued') $$,
  'which costs nothing'
);

select throws_ok(
  $$ select aivedio.request_cancel(fixture.id('other'), fixture.id('project'), fixture.id('queued'), fixture.id('user')) $$,
  'VC404', 'there is no such task',
  'a foreign task does not exist'
);

select is(
  (select count(*) from aivedio.operator_actions as action where action.action = 'request_cancel'),
  7::bigint,
  'each request that changed something is audited'
);

select finish();
rollback;
