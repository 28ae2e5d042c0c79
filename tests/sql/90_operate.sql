-- Stage 90: upkeep keeps partitions ahead and empties what is over; operators' calls are audited.
begin;
\ir support/fixtures.sql
-- Sequences do not roll back: this file puts them back itself.
\ir support/keep_sequences.sql
-- A vacuum that happens to be at work makes a caller come again; a transaction of tests cannot.
alter function aivedio.create_partition(text) set lock_timeout = '30s';
alter function aivedio.drop_partition(text) set lock_timeout = '30s';
select plan(23);

update aivedio.settings set value = '5' where name = 'partitions_ahead';
select is(aivedio.upkeep('task_events') ->> 'result', 'created', 'one partition a call');
select is(aivedio.upkeep('task_events') ->> 'result', 'created', 'until enough lie ahead');
select is(aivedio.upkeep('task_events') ->> 'result', 'nothing', 'and no more');
select has_table('aivedio'::name, 'task_events_p500000000'::name, 'the partition is there');
select is(
  (select count(*) from pg_indexes as index where index.schemaname = 'aivedio' and index.tablename = 'task_events_p500000000'),
  (select count(*) from pg_indexes as index where index.schemaname = 'aivedio' and index.tablename = 'task_events_p0'),
  'with the indexes of its elders'
);
select lives_ok(
  $$ select fixture.job('far'); select fixture.event(500000001, 0, 'far', 9) $$,
  'and takes rows'
);
select throws_ok(
  $$ select fixture.event(500000002, 0, 'far', 9) $$, '23505', null,
  'a version exists once in it'
);
select throws_ok($$ select aivedio.create_partition('alarms') $$, 'VC901', null, 'other tables have no partitions');
select throws_ok($$ select aivedio.upkeep('dance') $$, 'VC902', null, 'there is no other step');

select setval('aivedio.task_event_ids', 450000000);
select aivedio.create_partition('task_events');
select is((select alarm.kind from aivedio.alarms as alarm), 'partitions_low', 'few partitions ahead are an alarm');

-- Payloads go, keys stay.
insert into aivedio.provider_callback_inbox (provider, dedup_key, payload_hash, payload, process_status, processed_at)
values ('replicate', 'old', '\x00', '{"a": 1}', 'done', aivedio._clock() - interval '8 days'),
       ('replicate', 'new', '\x00', '{"a": 1}', 'done', aivedio._clock() - interval '6 days'),
       ('replicate', 'dead', '\x00', '{"a": 1}', 'dead', aivedio._clock());
select is((aivedio.upkeep('purge') ->> 'result')::integer, 1, 'an old payload is emptied');
select results_eq(
  $$ select inbox.dedup_key::text collate "default", inbox.payload is null from aivedio.provider_callback_inbox as inbox order by 1 $$,
  $$ values ('dead', false), ('new', false), ('old', true) $$,
  'its row stays, so that a repeat is still known'
);

select ok(
  aivedio.requeue_callback((select inbox.id from aivedio.provider_callback_inbox as inbox where inbox.dedup_key = 'dead'), 'ops', 'fixed the profile'),
  'a dead callback can be tried again'
);
select ok(
  not aivedio.requeue_callback((select inbox.id from aivedio.provider_callback_inbox as inbox where inbox.dedup_key = 'old'), 'ops', 'why not'),
  'one without a payload cannot'
);
select cmp_ok(aivedio.after_restore('ops', 'disk snapshot'), '>', 450000000::bigint, 'a restore by hand moves the ids');
select ok(aivedio.resolve_alarm('partitions_low', 'task_events', 'ops', 'made some'), 'an alarm can be closed');
select set_eq(
  $$ select action.action from aivedio.operator_actions as action $$,
  $$ values ('requeue_callback'), ('after_restore'), ('resolve_alarm') $$,
  'all of it is audited'
);
select ok(aivedio.pipeline_status() ?& array['inbox', 'outbox', 'polls', 'media', 'tasks', 'alarms', 'cases'], 'one look shows the path');

-- Why a task waits: a callback on its way counts before it is mapped.
select fixture.job('waits');
select aivedio.accept_callbacks(array[fixture.delivery('w1', 'waits')]);
select is(aivedio.why_waiting(fixture.id('waits')) ->> 'callbacks_waiting', '1', 'a callback that waits for its task is seen');
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select is(aivedio.why_waiting(fixture.id('waits')) ->> 'callbacks_waiting', '0', 'until it is applied');

-- This session holds its transaction; only the superuser and who may read statistics see since when.
select set_config('aivedio.now', (clock_timestamp() + interval '3 minutes')::text, true);
select aivedio.upkeep('alarms');
select is(
  (select alarm.subject from aivedio.alarms as alarm where alarm.kind = 'snapshot_held'), 'database',
  'a transaction that is open for minutes is an alarm, whoever holds it'
);

-- What upkeep and the status look for has an index, however much lies around it.
set local enable_seqscan = off;
create function pg_temp.plan(p_query text)
returns setof text
language plpgsql
as $plan$
begin
  return query execute 'explain (costs off) ' || p_query;
end;
$plan$;
select matches(
  (select string_agg(line, ' ') from pg_temp.plan($$ select count(*) from aivedio.provider_callback_inbox as inbox where inbox.process_status = 'dead' $$) as line),
  'provider_callback_inbox_dead', 'dead callbacks'
);
select matches(
  (select string_agg(line, ' ') from pg_temp.plan($$ select 1 from aivedio.attempt_outputs as output where output.url is not null and output.expires_at < now() limit 9 $$) as line),
  'attempt_outputs_purge', 'outputs that expired'
);

\ir support/put_back_sequences.sql
select finish();
rollback;
