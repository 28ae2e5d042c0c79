-- Stage 50: one change is one task row, one event, one outbox row and one stream head, and shows nothing private.
begin;
\ir support/fixtures.sql
-- Sequences do not roll back: this file puts them back itself.
\ir support/keep_sequences.sql
select plan(8);

select fixture.job();
select aivedio.apply_observation(
  fixture.observation(
    fixture.id('attempt of task'), 'failed', p_error_code => 'content_refused',
    p_outputs => '[{"kind": "video", "url": "https://provider.example/secret.mp4"}]'
  )
);

select results_eq(
  $$ select event.event_id, event.task_version, event.public_payload ->> 'status', event.public_payload #>> '{error,code}'
     from aivedio.task_events as event $$,
  $$ select stream.last_event_id, task.version, 'failed', 'content_refused'
     from aivedio.project_streams as stream, aivedio.generation_tasks as task $$,
  'the event is the stream''s head and the task''s version'
);

select results_eq(
  $$ select outbox.aggregate_version, (outbox.payload ->> 'event_id')::bigint, outbox.payload -> 'public_payload', outbox.shard
     from aivedio.outbox_events as outbox $$,
  $$ select event.task_version, event.event_id, event.public_payload, aivedio._shard(event.task_id)
     from aivedio.task_events as event $$,
  'the outbox row carries the same event'
);

select set_eq(
  $$ select jsonb_object_keys(event.public_payload) from aivedio.task_events as event $$,
  $$ values ('task_id'), ('task_version'), ('status'), ('stage'), ('progress'), ('asset_id'), ('attempt_no'),
            ('cancel_requested'), ('updated_at'), ('error') $$,
  'the public payload has these fields and no others'
);

select unalike(
  (select event.public_payload::text || outbox.payload::text from aivedio.task_events as event, aivedio.outbox_events as outbox),
  '%provider.example%',
  'no provider URL is in event or message'
);

select is(
  (select task.terminal_at from aivedio.generation_tasks as task), aivedio._clock(),
  'a terminal status has its time'
);

-- A restored database: the first writer moves the ids.
update aivedio.server_identity set timeline = 99;
select set_config('aivedio.lineage_checked', '', true);  -- as in another transaction
select fixture.job('second');
select aivedio.apply_observation(fixture.observation(fixture.id('attempt of second'), 'running'));

select cmp_ok(
  (select max(event.event_id) from aivedio.task_events as event), '>', 1000000000::bigint,
  'on another timeline the next event id is far ahead'
);
select is(
  (select identity.timeline from aivedio.server_identity as identity), aivedio._timeline(),
  'the new timeline is remembered'
);
select is(
  (select alarm.subject from aivedio.alarms as alarm where alarm.kind = 'restored'), 'database',
  'and an operator is told'
);

\ir support/put_back_sequences.sql
select finish();
rollback;
