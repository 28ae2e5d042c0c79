-- Stage 40: a provider that declares revisions may correct its result, until something was published; others may not.
begin;
\ir support/fixtures.sql
select plan(16);

create function pg_temp.see(p_task text, p_status text, p_revision bigint)
returns text
language sql
as $see$
  select (seen).verdict || ' ' || (seen).status
  from aivedio.apply_observation(
    fixture.observation(fixture.id('attempt of ' || p_task), p_status, p_revision => p_revision)
  ) as seen;
$see$;

create function pg_temp.message(p_task text)
returns jsonb
language sql
as $message$
  select outbox.payload from aivedio.outbox_events as outbox
  where outbox.aggregate_id = fixture.id(p_task) order by outbox.id desc limit 1;
$message$;

select fixture.job('undeclared', 'running');
select pg_temp.see('undeclared', 'failed', 1);
select is(pg_temp.see('undeclared', 'succeeded', 2), 'conflict failed', 'a revision that no profile declares is a contradiction');

update aivedio.providers
set effective = jsonb_set(effective, '{fields,revision}', '"$.revision"')
where name = 'replicate';

select fixture.job('task', 'running');
select is(pg_temp.see('task', 'failed', 1), 'applied failed', 'a job fails');
select is(pg_temp.see('task', 'succeeded', 1), 'conflict failed', 'the same revision contradicts');
select is(pg_temp.see('task', 'succeeded', null), 'conflict failed', 'and so does none');
select is(pg_temp.see('task', 'succeeded', 2), 'applied provider_succeeded', 'a higher revision corrects');
select results_eq(
  $$ select task.error_code, task.terminal_at, attempt.status from aivedio.generation_tasks as task
     join aivedio.task_attempts as attempt on attempt.id = task.current_attempt_id where task.id = fixture.id('task') $$,
  $$ values (null::text, null::timestamptz, 'succeeded') $$,
  'the failure is gone from the task and its attempt'
);
select is(pg_temp.see('task', 'succeeded', 2), 'duplicate provider_succeeded', 'once');
select is(pg_temp.see('task', 'failed', 1), 'conflict provider_succeeded', 'an older revision does not correct back');

-- Corrected back and forth while media is processed: what was fetched is fetched again.
select is(aivedio.open_media(pg_temp.message('task')), 'opened', 'media begins');
select aivedio.report_media(held.operation_id, held.lease_token, '{"done": {}}') from aivedio.claim_media('worker') as held;
select is(pg_temp.see('task', 'failed', 3), 'applied failed', 'a correction reaches a task whose media is processed');
select is_empty($$ select held.operation_id from aivedio.claim_media('worker') as held $$, 'whose media work is no longer handed out');
select is(pg_temp.see('task', 'succeeded', 4), 'applied provider_succeeded', 'and another brings it back');
select is(aivedio.open_media(pg_temp.message('task')), 'opened', 'then the output is fetched again');
select aivedio.report_media(held.operation_id, held.lease_token, '{"done": {}}') from aivedio.claim_media('worker') as held;
select is(
  (select held.operation_type from aivedio.claim_media('worker') as held), 'verify', 'and verified again'
);

select fixture.job('published', 'ready');
update aivedio.task_attempts set provider_revision = 1 where id = fixture.id('attempt of published');
select is(pg_temp.see('published', 'failed', 2), 'conflict ready', 'what is published stays');
select is(
  (select count(*) from aivedio.reconciliation_cases as known where known.attempt_id = fixture.id('attempt of published')),
  1::bigint,
  'and a person is told'
);

select finish();
rollback;
