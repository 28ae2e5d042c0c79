-- Stage 70: media work happens once per attempt, in order, fenced by tokens, and alone makes a task ready.
begin;
\ir support/fixtures.sql
select plan(31);

select fixture.job('task', 'provider_succeeded');
insert into aivedio.attempt_outputs (attempt_id, ordinal, url, expires_at, created_at)
values (fixture.id('attempt of task'), 0, 'https://provider.example/1.mp4', aivedio._clock() + interval '1 hour', aivedio._clock());

create function pg_temp.message(p_status text default 'provider_succeeded')
returns jsonb
language sql
as $message$
  select jsonb_build_object(
    'aggregate_id', fixture.id('task'), 'attempt_id', fixture.id('attempt of task'), 'status', p_status, 'event_id', 1
  );
$message$;

create temporary table held (operation_id uuid, lease_token bigint, operation_type text, sources jsonb, previous jsonb);

create function pg_temp.claim()
returns text
language plpgsql
as $claim$
declare
  v_held aivedio.media_task;
begin
  select claimed.* into v_held from aivedio.claim_media('worker', 1) as claimed;
  truncate held;
  insert into held values (v_held.operation_id, v_held.lease_token, v_held.operation_type, v_held.sources, v_held.previous);
  return v_held.operation_type;
end;
$claim$;

create function pg_temp.report(p_report jsonb, p_token_offset bigint default 0)
returns aivedio.applied
language sql
as $report$
  select aivedio.report_media(held.operation_id, held.lease_token + p_token_offset, p_report) from held;
$report$;

select is(aivedio.open_media(pg_temp.message()), 'opened', 'a success opens the backhaul');
select is(aivedio.open_media(pg_temp.message()), 'ignored', 'once, however often it is told');
select throws_ok($$ select aivedio.open_media('{}') $$, 'VC701', 'message names no task or attempt', 'a message about nothing is refused');

select is(pg_temp.claim(), 'backhaul', 'backhaul comes first');
select is((select held.sources from held), '[{"url": "https://provider.example/1.mp4", "kind": "video"}]'::jsonb, 'and gets the provider''s outputs');
select is(
  (select operation.rescue_deadline from aivedio.media_operations as operation), timestamptz '2026-06-24 04:10:00+00',
  'the deadline is when the provider deletes them'
);
select is_empty($$ select aivedio.claim_media('another') $$, 'a held operation is nobody else''s');
select is((select task.version from aivedio.generation_tasks as task), 1::bigint, 'a claim emits nothing');

select results_eq(
  $$ select (told).verdict, (told).status, (told).stage, (told).progress from pg_temp.report('{"progress": 10}') as told $$,
  $$ values ('applied', 'processing_media', 'backhauling', 10::smallint) $$,
  'the first report moves the task'
);
select is((pg_temp.report('{"progress": 50}')).verdict, 'coalesced', 'progress within a second is coalesced');
set local aivedio.now = '2026-06-24 03:10:02+00';
select is((pg_temp.report('{"progress": 30}')).progress, 50::smallint, 'progress never falls');
select is((pg_temp.report('{"progress": 60}', -1)).verdict, 'stale_lease', 'an old token changes nothing');

-- A worker dies: its lease runs out.
set local aivedio.now = '2026-06-24 03:12:00+00';
select is(pg_temp.claim(), 'backhaul', 'a lease that ran out makes the operation due again');
select is((pg_temp.report('{"done": {"bytes": 3}}')).verdict, 'applied', 'and the next worker finishes it');

select is(pg_temp.claim(), 'verify', 'then verify');
select is((select held.previous from held), '{"bytes": 3}'::jsonb, 'with the result before it');
select pg_temp.report('{"done": {}}');
select pg_temp.claim();
select is((pg_temp.report('{"failed": "codec", "retry": true}')).status, 'processing_media', 'a failure that may pass is tried again');
set local aivedio.now = '2026-06-24 03:20:00+00';
select is(pg_temp.claim(), 'transcode', 'later');
select pg_temp.report('{"done": {}}');
select is(pg_temp.claim(), 'publish', 'publish comes last');

select throws_ok(
  $$ select pg_temp.report('{"done": {}}') $$,
  'VC702', 'publish is not done without an asset_id',
  'ready needs an asset'
);
select throws_ok(
  $$ select pg_temp.report('{"done": {"asset_id": "https://provider.example/1.mp4"}}') $$,
  'VC702', 'publish is not done without an asset_id',
  'and a URL is none'
);
select throws_ok($$ select pg_temp.report('{"hello": 1}') $$, 'VC702', 'media report has no known shape', 'a report must have a shape');
select results_eq(
  $$ select (told).status, (told).progress from pg_temp.report('{"done": {"asset_id": "ast_1"}}') as told $$,
  $$ values ('ready', 100::smallint) $$,
  'and with one the task is ready'
);
select is((select output.url from aivedio.attempt_outputs as output), null, 'the provider''s URL is forgotten');
select is((pg_temp.report('{"done": {"asset_id": "ast_2"}}')).verdict, 'stale_lease', 'a late report changes nothing');


-- A repeat of the success, with more outputs than before, is too late to be fetched.
select aivedio._keep_outputs(fixture.observation(
  fixture.id('attempt of task'), 'succeeded',
  p_outputs => '[{"kind": "video", "url": "https://provider.example/1.mp4"}, {"kind": "image", "url": "https://provider.example/1.jpg"}]'
));
select is((select count(output.url) from aivedio.attempt_outputs as output), 0::bigint, 'it stays forgotten, whatever is repeated');

delete from aivedio.attempt_outputs;
select aivedio._keep_outputs(fixture.observation(
  fixture.id('attempt of task'), 'succeeded', p_outputs => '[{"kind": "video", "url": "https://provider.example/1.mp4"}]'
));
select is((select count(*) from aivedio.attempt_outputs as output), 0::bigint, 'nor is one kept that comes only after publication');

-- P8: what the provider deletes first is fetched first, and somebody is told before it is gone.
select fixture.job('later', 'provider_succeeded', 'rescue');
select fixture.job('sooner', 'provider_succeeded', 'rescue');
insert into aivedio.attempt_outputs (attempt_id, ordinal, url, expires_at, created_at)
select fixture.id('attempt of ' || job.name), 1, 'https://provider.example/2.mp4', aivedio._clock() + job.rest, aivedio._clock()
from (values ('later', interval '50 minutes'), ('sooner', interval '10 minutes')) as job (name, rest);
select aivedio.open_media(jsonb_build_object('aggregate_id', fixture.id(name), 'attempt_id', fixture.id('attempt of ' || name)))
from (values ('later'), ('sooner')) as job (name);
select aivedio._watch_queues();
select results_eq(
  $$ select operation.task_id from aivedio.alarms as alarm join aivedio.media_operations as operation on operation.id::text = alarm.subject
     where alarm.kind = 'media_rescue' $$,
  $$ values (fixture.id('sooner')) $$,
  'what will be deleted within minutes is alarmed'
);
select is((select claimed.task_id from aivedio.claim_media('worker', 1) as claimed), fixture.id('sooner'), 'and handed out first');
select aivedio.claim_media('worker', 9);

-- A project may follow its media as closely as its jobs.
insert into aivedio.project_settings (project_id, progress_step, progress_interval) values (fixture.id('other'), 1, '0');
select fixture.job('close', 'provider_succeeded', 'other');
select aivedio.open_media(jsonb_build_object('aggregate_id', fixture.id('close'), 'attempt_id', fixture.id('attempt of close')));
select pg_temp.claim();
select pg_temp.report('{"progress": 10}');
select is((pg_temp.report('{"progress": 11}')).verdict, 'applied', 'a point at a time');
select is((pg_temp.report('{"progress": 11}')).verdict, 'coalesced', 'but not the same one twice');

select finish();
rollback;
