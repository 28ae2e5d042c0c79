-- Stage 40: create_task makes a task once for each idempotency key, with its attempt and its first event.
begin;
\ir support/fixtures.sql
select plan(13);

create function pg_temp.create(p_key text, p_input jsonb default '{"prompt": "fog"}', p_tenant text default 'tenant', p_provider text default 'replicate')
returns aivedio.applied
language sql
as $create$
  select aivedio.create_task(
    fixture.id(p_tenant), fixture.id('project'), fixture.id('user'), p_provider, 'lumen/video-1', p_input, p_key, 'trace-1'
  );
$create$;

select results_eq(
  $$ select (made).verdict, (made).status, (made).task_version, (made).event_id is not null
     from pg_temp.create('one') as made $$,
  $$ values ('applied', 'created', 1::bigint, true) $$,
  'a new task is created at version 1 with an event'
);

select results_eq(
  $$ select attempt.attempt_no, attempt.status, attempt.submit_state, attempt.client_request_id = attempt.id::text
     from aivedio.task_attempts as attempt $$,
  $$ values (1, 'created', 'due', true) $$,
  'its first attempt waits for submission and already has the id that the provider will echo'
);

select results_eq(
  $$ select (again).verdict, (again).task_id = task.id
     from pg_temp.create('one') as again, aivedio.generation_tasks as task $$,
  $$ values ('duplicate', true) $$,
  'the same request again answers with the first task'
);

select is((select count(*) from aivedio.task_attempts), 1::bigint, 'and submits nothing more');
select is((select count(*) from aivedio.task_events), 1::bigint, 'and writes no event');

select throws_ok(
  $$ select pg_temp.create('one', '{"prompt": "rain"}') $$,
  'VC410', 'idempotency key belongs to a different request',
  'a key that belongs to another request is refused'
);

select is((pg_temp.create(null)).verdict, 'applied', 'without a key each call is a new task');
select is((pg_temp.create(null)).verdict, 'applied', 'every time');

select throws_ok(
  $$ select pg_temp.create('two', p_tenant => 'other') $$,
  'VC404', 'there is no such project',
  'another tenant''s project does not exist'
);

select throws_ok(
  $$ select pg_temp.create('three', p_provider => 'nobody') $$,
  'VC411', 'provider has no profile',
  'an unknown provider is refused'
);

select throws_ok(
  $$ select pg_temp.create('four', '["prompt"]') $$,
  'VC412', 'input must be a JSON object within the size limit',
  'an input that is no object is refused'
);

select throws_ok(
  $$ select pg_temp.create('five', jsonb_build_object('prompt', repeat('x', 70000))) $$,
  'VC412', 'input must be a JSON object within the size limit',
  'an input over the limit is refused'
);

select results_eq(
  $$ select count(*), count(distinct event.event_id), bool_and(event.prev_event_id < event.event_id)
     from aivedio.task_events as event $$,
  $$ values (3::bigint, 3::bigint, true) $$,
  'each task has exactly one event, each linked backwards'
);

select finish();
rollback;
