-- Stage 90: partitions end by age and are dropped after their retention, unless something needs them.
begin;
\ir support/fixtures.sql
-- Sequences do not roll back: this file puts them back itself.
\ir support/keep_sequences.sql
-- A vacuum that happens to be at work makes a caller come again; a transaction of tests cannot.
alter function aivedio.create_partition(text) set lock_timeout = '30s';
alter function aivedio.drop_partition(text) set lock_timeout = '30s';
select plan(33);

create function pg_temp.at(p_days integer)
returns void
language sql
as $at$
  select set_config('aivedio.now', ('2026-06-24 03:10:00+00'::timestamptz + make_interval(days => p_days))::text, true);
$at$;

update aivedio.settings set value = '100' where name = 'partition_ids';
-- Ranges of a size that the setting had before lie below those of today.
select setval('aivedio.task_event_ids', 450000000), setval('aivedio.outbox_ids', 450000000), setval('aivedio.observation_ids', 450000000);
select aivedio.create_partition(parent) from unnest(array['task_events', 'outbox_events', 'observations']) as parent, generate_series(1, 4);

select fixture.job('old');
select fixture.event(450000001, 0, 'old', 1), setval('aivedio.task_event_ids', 450000001);

-- Ending
select ok(not aivedio.end_partition('task_events'), 'a young partition goes on');
select pg_temp.at(2);
select ok(aivedio.end_partition('task_events'), 'one that is a day old ends');
select is(nextval('aivedio.task_event_ids'), 450000101::bigint, 'ids go on in the next');
select ok(not aivedio.end_partition('task_events'), 'an empty one does not end');
select fixture.event(450000191, 450000001, 'old', 2), setval('aivedio.task_event_ids', 450000191);
select pg_temp.at(5);
select ok(not aivedio.end_partition('task_events'), 'one that is nearly full ends by itself');
select setval('aivedio.task_event_ids', 450000180);
select ok(aivedio.end_partition('task_events'), 'until then it can be ended');
select throws_ok($$ select aivedio.end_partition('alarms') $$, 'VC901', null, 'other tables have no partitions to end');

-- Dropping
create function pg_temp.partitions(p_parent text)
returns text
language sql
as $partitions$
  select string_agg(range.low::text, ' ' order by range.low)
  from aivedio._partitions(p_parent) as range
  where range.low >= 450000000;
$partitions$;

-- The four that the migrations made hold nothing and lie behind.
select aivedio.drop_partition('task_events') from generate_series(1, 10);
select is(pg_temp.partitions('task_events'), '450000000 450000100 450000200 450000300', 'what lies behind and is empty goes first');
select is(aivedio.drop_partition('task_events'), 'nothing', 'what is young stays');
select pg_temp.at(31);
select is(aivedio.drop_partition('task_events'), 'announced', 'a drop is announced');
select is((select floors.floor from aivedio.retention_floors as floors where floors.parent = 'task_events'), 450000100::bigint, 'with the id from which rows are kept');
select ok(pg_temp.partitions('task_events') like '450000000 %', 'nothing is gone yet');
select is(aivedio.drop_partition('task_events'), 'dropped', 'and done at the next call');
select is(pg_temp.partitions('task_events'), '450000100 450000200 450000300', 'the partition is gone');
select is(aivedio.drop_partition('task_events'), 'nothing', 'the next is young');
select throws_ok($$ select aivedio.drop_partition('alarms') $$, 'VC901', null, 'other tables have no partitions to drop');

-- A reader whose cursor points into what is gone takes a snapshot; one at the head goes on.
select is((aivedio.read_events_after(fixture.id('project'), 450000000)).reason, 'pruned', 'a cursor before the drop is told so');
select ok((aivedio.read_events_after(fixture.id('project'), 450000001)).complete, 'one that names the first event that is left goes on');
select ok((aivedio.read_events_after(fixture.id('project'), 450000191)).complete, 'so does one at the head');

-- What is owed to the bus stays, and so does what is behind an open case.
insert into aivedio.outbox_events (id, aggregate_type, aggregate_id, aggregate_version, event_type, payload, publish_status, shard, created_at)
values (450000001, 'task', fixture.id('old'), 1, 'task.status.changed', '{}', 'parked', 0, aivedio._clock() - interval '9 days'),
       (450000101, 'task', fixture.id('old'), 2, 'task.status.changed', '{}', 'published', 0, aivedio._clock() - interval '8 days');
select setval('aivedio.outbox_ids', 450000201);
select aivedio.drop_partition('outbox_events') from generate_series(1, 10);
select is(pg_temp.partitions('outbox_events'), '450000000 450000200 450000300', 'a parked message keeps its partition, and no other');
select is(aivedio.drop_partition('outbox_events'), 'kept', 'that is said');
select is((select alarm.subject from aivedio.alarms as alarm where alarm.kind = 'partition_kept'), 'outbox_events_p450000000', 'and an alarm');
update aivedio.outbox_events set publish_status = 'published' where id = 450000001;
select is(aivedio.drop_partition('outbox_events'), 'dropped', 'once it is sent the partition goes');

insert into aivedio.observations (id, judged_at, received_at, task_id, provider, source, verdict)
values (450000001, aivedio._clock() - interval '200 days', aivedio._clock() - interval '200 days', fixture.id('old'), 'replicate', 'webhook', 'conflict');
select setval('aivedio.observation_ids', 450000101);
select aivedio._open_case('conflict', 'old', attempt, 'replicate', '{}')
from aivedio.task_attempts as attempt
where attempt.task_id = fixture.id('old');
select aivedio.drop_partition('observations') from generate_series(1, 10);
select ok(pg_temp.partitions('observations') like '450000000 %', 'an open case keeps the observations of its task');
update aivedio.reconciliation_cases set state = 'resolved', resolved_at = now(), resolution = 'kept', resolved_by = 'ops';
select aivedio.drop_partition('observations') from generate_series(1, 2);
select ok(pg_temp.partitions('observations') not like '450000000 %', 'until it is resolved');

-- One at a time, in the order of need.
select is(aivedio.keep_partitions('task_events'), 'created', 'partitions ahead come first');
select is(aivedio.keep_partitions('task_events'), 'created', 'as many as are set');
select is(aivedio.keep_partitions('task_events'), 'nothing', 'then there is nothing to do');

-- Chains are proved again.
select pg_temp.at(40);
select is(aivedio.check_streams(), 1, 'each event that is left is looked at');
select is_empty($$ select from aivedio.alarms as alarm where alarm.kind in ('stream_broken', 'version_twice') $$, 'and found well');
select fixture.event(450000201, 450000180, 'old', 2);
select pg_temp.at(41);
select aivedio.check_streams();
select results_eq(
  $$ select alarm.kind, alarm.subject from aivedio.alarms as alarm where alarm.kind in ('stream_broken', 'version_twice') order by 1 $$,
  $$ values ('stream_broken', fixture.id('project')::text), ('version_twice', fixture.id('old')::text) $$,
  'a gap, and a version in two partitions, are alarms'
);
select is(aivedio.check_streams(), 0, 'once');

-- Callbacks are forgotten when no provider repeats them any more.
insert into aivedio.provider_callback_inbox (provider, dedup_key, payload_hash, process_status, received_at, processed_at)
select 'replicate', status || age, '\x00', status, aivedio._clock() - make_interval(days => age), case when status <> 'pending' then now() end
from unnest(array['done', 'dead', 'pending']) as status, unnest(array[29, 31, 91]) as age;
select aivedio.purge();
select results_eq(
  $$ select inbox.dedup_key::text collate "default" from aivedio.provider_callback_inbox as inbox order by 1 $$,
  $$ values ('dead29'), ('dead31'), ('done29'), ('pending29'), ('pending31'), ('pending91') $$,
  'done after a month, dead after a season, waiting never'
);

\ir support/put_back_sequences.sql
select finish();
rollback;
