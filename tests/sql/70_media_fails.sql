-- Stage 70: media that cannot be saved fails its task, once; media that nobody wants any more does nothing.
begin;
\ir support/fixtures.sql
select plan(16);

select fixture.job('task', 'provider_succeeded');
select fixture.job('gone', 'provider_succeeded');
select aivedio.open_media(
  jsonb_build_object('aggregate_id', fixture.id(name), 'attempt_id', fixture.id('attempt of ' || name))
)
from (values ('task'), ('gone')) as known (name);

create temporary table held as select * from aivedio.claim_media('worker', 10);
select is((select count(*) from held), 2::bigint, 'both operations are held');

select results_eq(
  $$ select (told).status from held, aivedio.report_media(held.operation_id, held.lease_token, '{"failed": "expired", "retry": false}') as told
     where held.task_id = fixture.id('task') $$,
  $$ values ('failed') $$,
  'a hopeless failure fails the task'
);
select is(
  (select task.error_code from aivedio.generation_tasks as task where task.id = fixture.id('task')), 'media_failed',
  'with a public error'
);
select is((select alarm.kind from aivedio.alarms as alarm), 'media_failed', 'and an alarm');
select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('attempt of task'), 'succeeded', 'poll'))).verdict,
  'duplicate',
  'the provider''s success seen again contradicts nothing: the attempt did succeed'
);

insert into aivedio.project_settings (project_id, cancel_policy) values (fixture.id('project'), 'discard');
select aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id('gone'), fixture.id('user'));
select results_eq(
  $$ select (told).verdict, (told).status from held, aivedio.report_media(held.operation_id, held.lease_token, '{"progress": 50}') as told
     where held.task_id = fixture.id('gone') $$,
  $$ values ('after_terminal', 'canceled') $$,
  'work for a canceled task is told so'
);
select is_empty($$ select aivedio.claim_media('worker') $$, 'and is over');

-- Work that waits for a task which goes another way is handed out to nobody.
select fixture.job('left', 'provider_succeeded');
select aivedio.open_media(jsonb_build_object('aggregate_id', fixture.id('left'), 'attempt_id', fixture.id('attempt of left')));
select aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id('left'), fixture.id('user'));
select is_empty($$ select aivedio.claim_media('worker') $$, 'nobody fetches the output of a canceled task');
select results_eq(
  $$ select operation.status, operation.error_class from aivedio.media_operations as operation where operation.task_id = fixture.id('left') $$,
  $$ values ('failed', 'not_wanted') $$,
  'its operation is over'
);

-- The provider corrects itself while a later operation is held: that one worked on a result that is gone.
select fixture.job('twice', 'provider_succeeded');
select aivedio.open_media(jsonb_build_object('aggregate_id', fixture.id('twice'), 'attempt_id', fixture.id('attempt of twice')));
select aivedio.report_media(held.operation_id, held.lease_token, '{"done": {}}') from aivedio.claim_media('worker') as held;
truncate held;
insert into held select * from aivedio.claim_media('worker');
update aivedio.generation_tasks set status = 'provider_succeeded', stage = 'provider_succeeded' where id = fixture.id('twice');
select is(
  aivedio.open_media(jsonb_build_object('aggregate_id', fixture.id('twice'), 'attempt_id', fixture.id('attempt of twice'))), 'opened',
  'a corrected result is fetched again'
);
select is(
  (select (told).verdict from held, aivedio.report_media(held.operation_id, held.lease_token, '{"done": {}}') as told), 'stale_lease',
  'and what was going on with the first one is over'
);

-- Workers that vanish, one after the other, on the same file.
update aivedio.media_operations set status = 'done' where status <> 'failed';
select fixture.job('cursed', 'provider_succeeded');
select aivedio.open_media(
  jsonb_build_object('aggregate_id', fixture.id('cursed'), 'attempt_id', fixture.id('attempt of cursed'))
);
create function pg_temp.die(p_minutes integer)
returns bigint
language plpgsql
as $die$
begin
  perform set_config('aivedio.now', (timestamptz '2026-06-24 04:00:00+00' + make_interval(mins => p_minutes * 2))::text, true);
  return (select count(*) from aivedio.claim_media('mortal') as held where held.task_id = fixture.id('cursed'));
end;
$die$;
select is((select sum(pg_temp.die(number)) from generate_series(1, 5) as number), 5::numeric, 'an operation is tried five times');
select is((aivedio.upkeep('media') ->> 'result')::integer, 0, 'while a worker may still report, nothing is given up');
select is(pg_temp.die(7), 0::bigint, 'it is not handed out a sixth time');
select is((aivedio.upkeep('media') ->> 'result')::integer, 1, 'but given up');
select results_eq(
  $$ select task.status, task.error_code from aivedio.generation_tasks as task where task.id = fixture.id('cursed') $$,
  $$ values ('failed', 'media_failed') $$,
  'and its task fails'
);

select finish();
rollback;
