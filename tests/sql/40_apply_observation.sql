-- Stage 40: the guards around the matrix: progress, sequence, unknown words, the ledger.
begin;
\ir support/fixtures.sql
select plan(27);

create function pg_temp.see(
  p_status text, p_progress integer default null, p_sequence bigint default null,
  p_source text default 'webhook', p_task text default 'task'
)
returns aivedio.applied
language sql
as $see$
  select aivedio.apply_observation(
    fixture.observation(fixture.id('attempt of ' || p_task), p_status, p_source, p_progress, p_sequence)
  );
$see$;

select fixture.job();

-- Progress.
select is((pg_temp.see('running', 10)).progress, 10::smallint, 'the first progress comes with the status');
select is((pg_temp.see('running', 40)).verdict, 'coalesced', 'progress within a second is coalesced');

set local aivedio.now = '2026-06-24 03:10:01+00';
select is((pg_temp.see('running', 14)).verdict, 'coalesced', 'less than five points is coalesced');
select is((pg_temp.see('running', 15)).verdict, 'applied', 'five points after a second are written');
select is(
  (select event.event_type from aivedio.task_events as event order by event.event_id desc limit 1),
  'task.progress.changed',
  'as an event that says it is only progress'
);

set local aivedio.now = '2026-06-24 03:10:05+00';
select is((pg_temp.see('running', 15)).verdict, 'duplicate', 'the same progress is a duplicate');
select is((pg_temp.see('running', 3)).verdict, 'duplicate', 'progress never falls');
select is((pg_temp.see('running')).verdict, 'duplicate', 'running without progress says nothing new');

-- A project may ask for finer steps.
insert into aivedio.project_settings (project_id, progress_step, progress_interval) values (fixture.id('project'), 1, '0');
select is((pg_temp.see('running', 16)).verdict, 'applied', 'a project with a step of one point gets one point');

-- Provider sequence, where there is one, decides before the matrix.
select is((pg_temp.see('running', 50, 7)).verdict, 'applied', 'a sequence begins anywhere');
select is((pg_temp.see('succeeded', null, 7)).verdict, 'stale_sequence', 'a sequence that stands still is stale');
select is((pg_temp.see('succeeded', null, 6)).verdict, 'stale_sequence', 'so is one that falls');

-- Words.
select results_eq(
  $$ select (said).verdict, (said).status
     from aivedio.apply_observation(fixture.observation(fixture.id('attempt of task'), null, p_word => 'reticulating')) as said $$,
  $$ values ('unknown_word', 'running') $$,
  'an unknown word changes nothing'
);
select is(
  (select alarm.subject from aivedio.alarms as alarm where alarm.kind = 'unknown_word'),
  'replicate:reticulating',
  'and raises an alarm that names it'
);

-- Ends.
select is((pg_temp.see('succeeded', null, 8)).status, 'provider_succeeded', 'success is not ready');
select is((select task.progress from aivedio.generation_tasks as task), null::smallint, 'the media stages count anew');
select is((pg_temp.see('succeeded', p_source => 'poll')).verdict, 'duplicate', 'the poll sees the same end');
select is((pg_temp.see('succeeded', p_source => 'poll')).verdict, 'duplicate', 'and again');
select results_eq(
  $$ select seen.source, seen.verdict from aivedio.observations as seen
     where seen.normalized_status = 'succeeded' and seen.verdict <> 'stale_sequence' order by seen.id $$,
  $$ values ('webhook', 'applied'), ('poll', 'duplicate') $$,
  'the ledger knows who saw the end first, once per source'
);
select is((pg_temp.see('failed')).verdict, 'conflict', 'a contradiction is a conflict');
select results_eq(
  $$ select task.status, attempt.status, attempt.next_poll_at
     from aivedio.generation_tasks as task join aivedio.task_attempts as attempt on attempt.task_id = task.id $$,
  $$ values ('provider_succeeded', 'succeeded', timestamptz '2026-06-24 03:15:05+00') $$,
  'that changes nothing, but is asked about again, slowly'
);
select is((pg_temp.see('failed')).verdict, 'conflict', 'however often it comes');
select results_eq(
  $$ select known.kind, jsonb_array_length(known.evidence) from aivedio.reconciliation_cases as known $$,
  $$ values ('conflict', 2) $$,
  'one case collects the evidence'
);

-- The version counts the events, and the chain has no hole.
select results_eq(
  $$ select task.version, task.last_event_id from aivedio.generation_tasks as task $$,
  $$ select count(*) + 1, max(event.event_id) from aivedio.task_events as event $$,
  'the version rose once per event'
);
select is_empty(
  $$ select event.event_id
     from (select event.*, lag(event.event_id, 1, 0::bigint) over (order by event.event_id) as before from aivedio.task_events as event) as event
     where event.prev_event_id <> event.before $$,
  'each event names the one before it'
);

select throws_ok(
  $$ select pg_temp.see('running', p_source => 'rumour') $$,
  'VC403', 'observation has no usable source',
  'a source that is none of ours is refused'
);
select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('nobody'), 'running'))).verdict,
  'orphan',
  'an observation of no attempt is an orphan'
);

select finish();
rollback;
