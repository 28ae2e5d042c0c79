-- Stage 40: a task that the application submits by itself is sent by nobody else.
begin;
\ir support/fixtures.sql
select plan(23);

create function pg_temp.create(p_key text default 'one')
returns aivedio.applied
language sql
as $create$
  select aivedio.create_external_task(
    fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'replicate', 'lumen/video-1', '{"prompt": "fog"}', p_key, 'trace-1'
  );
$create$;

create function pg_temp.claimed()
returns bigint
language sql
as $claimed$
  select count(*) from aivedio.claim_submits('worker', 10, 'https://us.example');
$claimed$;

create function pg_temp.record(p_task uuid, p_id text)
returns aivedio.applied
language sql
as $record$
  select aivedio.record_submission(fixture.id('tenant'), fixture.id('project'), p_task, p_id, 'app', 'submitted by the application');
$record$;

create temporary table made as select (aivedio_task).* from pg_temp.create() as aivedio_task;
select results_eq(
  $$ select made.verdict, made.status, made.event_id is not null from made $$, $$ values ('applied', 'created', true) $$, 'it is created as any task'
);
select results_eq(
  $$ select attempt.submit_state, attempt.client_request_id = made.attempt_id::text
     from made join aivedio.task_attempts as attempt on attempt.id = made.attempt_id $$,
  $$ values ('application', true) $$,
  'the answer names the client_request_id that the application submits with'
);
select is(pg_temp.claimed(), 0::bigint, 'the submit edge never takes it');
set local aivedio.now = '2026-06-24 06:00:00+00';
select is(pg_temp.claimed(), 0::bigint, 'however long it waits');

select is((pg_temp.create()).verdict, 'duplicate', 'who dies before it knows the answer asks again');
select throws_ok(
  $$ select aivedio.create_task(
       fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'replicate', 'lumen/video-1', '{"prompt": "fog"}', 'one') $$,
  'VC410', null, 'the same key for a task that aivedio submits is another request'
);

select results_eq(
  $$ select (told).verdict, (told).status from made, pg_temp.record(made.task_id, 'job-1') as told $$,
  $$ values ('applied', 'submitted') $$, 'the application tells the provider''s id'
);
select results_eq(
  $$ select attempt.submit_state, attempt.provider_task_id = 'job-1', attempt.next_poll_at is not null
     from made join aivedio.task_attempts as attempt on attempt.id = made.attempt_id $$,
  $$ values ('accepted', true, true) $$, 'and the job is polled'
);
select results_eq(
  $$ select event.public_payload ->> 'status' from aivedio.task_events as event order by event.event_id $$,
  $$ values ('created'), ('submitting'), ('submitted') $$, 'its history reads as any other'
);

-- Another attempt of it is the application's as well.
select aivedio.apply_observation(fixture.observation(made.attempt_id, 'failed')) from made;
create temporary table again as
select (started).* from made, aivedio.start_attempt(
  fixture.id('tenant'), fixture.id('project'), made.task_id, 'app', 'once more'
) as started;
select is((select verdict from again), 'applied', 'it is tried again');
select is(pg_temp.claimed(), 0::bigint, 'by the application alone');
select results_eq(
  $$ select (told).verdict, (told).status from made, pg_temp.record(made.task_id, 'job-2') as told $$,
  $$ values ('applied', 'submitted') $$, 'which tells the new id'
);
select is(
  (select attempt.provider_task_id from again join aivedio.task_attempts as attempt on attempt.id = again.attempt_id), 'job-2', 'of the new attempt'
);

-- A callback that is faster than the application's report.
create temporary table fast as select (aivedio_task).* from pg_temp.create('two') as aivedio_task;
select is(
  (select (aivedio.apply_observation(fixture.observation(fast.attempt_id, 'running'))).verdict from fast), 'applied', 'a callback that overtakes the report is applied'
);
select is(
  (select attempt.submit_state from fast join aivedio.task_attempts as attempt on attempt.id = fast.attempt_id), 'accepted', 'the provider has it'
);
update aivedio.task_attempts set next_poll_at = null where id = (select fast.attempt_id from fast);
select is((select (pg_temp.record(fast.task_id, 'job-3')).verdict from fast), 'applied', 'the report adds the id');

-- It was submitted, but under an id that another attempt holds: a person decides.
create temporary table doubtful as select (aivedio_task).* from pg_temp.create('doubtful') as aivedio_task;
select is((select (pg_temp.record(doubtful.task_id, 'job-2')).verdict from doubtful), 'conflict', 'the id of another attempt is refused');
select is(
  (select attempt.status || ' ' || attempt.submit_state from doubtful join aivedio.task_attempts as attempt on attempt.id = doubtful.attempt_id),
  'submit_unknown unknown', 'that it was submitted is known, and no more'
);

-- Nothing was submitted, as far as anybody knows: it ends at once.
create temporary table unwanted as select (aivedio_task).* from pg_temp.create('three') as aivedio_task;
select is(
  (select (aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), unwanted.task_id, fixture.id('user'))).status from unwanted),
  'canceled', 'what was not recorded is canceled at once'
);
create temporary table replaced as select (aivedio_task).* from pg_temp.create('four') as aivedio_task;
select fixture.attempt('task', 'old') from (select fixture.task()) as made;
update aivedio.task_attempts set task_id = (select replaced.task_id from replaced), attempt_no = 7, status = 'succeeded', terminal_at = aivedio._clock()
where id = fixture.id('old');
select is(
  (select (aivedio.adopt_attempt(fixture.id('tenant'), fixture.id('project'), replaced.task_id, fixture.id('old'), 'ops', 'take it')).verdict from replaced),
  'applied', 'an old result is adopted instead'
);
select is(
  (select attempt.status || ' ' || attempt.submit_state from replaced join aivedio.task_attempts as attempt on attempt.id = replaced.attempt_id),
  'canceled withdrawn', 'and the attempt that was to be submitted is not waited for'
);
select matches(
  obj_description('aivedio.create_task'::regproc, 'pg_proc'), 'create_external_task', 'create_task says where to look'
);
select matches(
  obj_description('aivedio.create_external_task'::regproc, 'pg_proc'), 'submits by itself.*record_submission', 'and how it is used is written there'
);

select finish();
rollback;
