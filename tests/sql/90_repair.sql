-- Stage 90: callbacks are rehearsed and replayed, messages sent again, circuits closed, secrets rotated: all audited.
begin;
\ir support/fixtures.sql
select plan(38);

-- Rehearsing
select fixture.job('a', 'queued');
select aivedio.accept_callbacks(array[fixture.delivery('e1', 'a', 'processing')]);
create function pg_temp.callback(p_event text)
returns bigint
language sql
as $callback$
  select inbox.id from aivedio.provider_callback_inbox as inbox where inbox.provider_event_id = p_event;
$callback$;
create function pg_temp.replay(p_event text, p_dry_run boolean default true)
returns jsonb
language sql
as $replay$
  select aivedio.replay_callback(pg_temp.callback(p_event), 'ops@example.com', 'the profile changed', p_dry_run);
$replay$;
create temp table rehearsal as select pg_temp.replay('e1') as told;
select is(told ->> 'verdict', 'applied', 'a rehearsal tells the verdict') from rehearsal;
select is(told -> 'before' ->> 'status', 'queued', 'the task as it is') from rehearsal;
select is(told -> 'after' ->> 'status', 'running', 'and as it would be') from rehearsal;
select is(told ->> 'task_id', fixture.id('a')::text, 'and which one it is') from rehearsal;
select is(
  (select task.status || task.version from aivedio.generation_tasks as task where task.id = fixture.id('a')), 'queued1',
  'the task is untouched'
);
select is_empty($$ select from aivedio.task_events $$, 'no event is written');
select is_empty($$ select from aivedio.observations $$, 'nothing is judged');
select is_empty($$ select from aivedio.operator_actions $$, 'and nothing is audited');
select is((select inbox.process_status from aivedio.provider_callback_inbox as inbox), 'pending', 'the callback still waits');

-- Replaying
select is(pg_temp.replay('e1', false) ->> 'verdict', 'applied', 'one that waits is applied at once');
select is((select task.status from aivedio.generation_tasks as task where task.id = fixture.id('a')), 'running', 'in earnest');
select is(
  (select inbox.process_status || ' ' || inbox.verdict from aivedio.provider_callback_inbox as inbox), 'done applied',
  'and done'
);
select throws_ok($$ select pg_temp.replay('e1', false) $$, 'VC906', null, 'what had its effect is not replayed');
select is(pg_temp.replay('e1') ->> 'verdict', 'duplicate', 'but can be rehearsed');
select throws_ok($$ select aivedio.replay_callback(0, 'ops', 'why') $$, 'VC905', null, 'what is not there cannot');
select throws_ok($$ select aivedio.replay_callback(1, 'ops', ' ') $$, 'VC413', null, 'and a reason is needed');

-- One that maps to nothing, and one that is poison.
select aivedio.accept_callbacks(array[fixture.delivery('e2', 'nobody', 'processing')]);
select is(pg_temp.replay('e2') ->> 'status', 'retry', 'one without a job would be tried again');
select is(pg_temp.replay('e2') -> 'before', 'null'::jsonb, 'there is no task to show');
select aivedio.accept_callbacks(array[fixture.delivery('e3', 'a', 'succeeded')]);
update aivedio.provider_callback_inbox as inbox set payload = '[]' where inbox.provider_event_id = 'e3';
select is(pg_temp.replay('e3') ->> 'error', 'VC303', 'a rehearsal names what is wrong with a payload');
select is(pg_temp.replay('e3', false) ->> 'status', 'dead', 'and in earnest it ends dead');

-- Sending again
select aivedio.own_shard(shard::smallint) from generate_series(0, 7) as shard;
select aivedio.mark_published(message.shard, array[message.id])
from aivedio.outbox_events as message;
create function pg_temp.owed()
returns bigint
language sql
as $owed$
  select count(*) from aivedio.outbox_events as message where message.publish_status = 'pending';
$owed$;
select is(pg_temp.owed(), 0::bigint, 'all is sent');
select is(
  aivedio.republish('2026-06-24 02:00:00+00', '2026-06-24 03:00:00+00', 'ops', 'a broker was lost') ->> 'messages', '0',
  'a span without messages'
);
select is(
  aivedio.republish('2026-06-24 03:00:00+00', '2026-06-24 04:00:00+00', 'ops', 'a broker was lost'),
  '{"messages": 1, "until": "2026-06-24T03:10:00+00:00"}', 'and one with'
);
select is(pg_temp.owed(), 1::bigint, 'it is owed again');
select is(
  (select count(*) from generate_series(0, 7) as shard, aivedio.read_outbox(shard::smallint)), 1::bigint, 'and found by the relay'
);
select throws_ok(
  $$ select aivedio.republish('2026-06-24 04:00:00+00', '2026-06-24 03:00:00+00', 'ops', 'why') $$, 'VC907', null,
  'a span has a direction'
);
select throws_ok(
  $$ select aivedio.republish('2026-06-24 03:00:00+00', '2026-06-24 04:00:00+00', 'ops', 'why', 0) $$, 'VC907', null,
  'and a limit'
);
select aivedio.release_shard(shard::smallint) from generate_series(0, 7) as shard;

-- The first id of a moment is found by halves, and never one too far.
insert into aivedio.outbox_events (id, aggregate_type, aggregate_id, aggregate_version, event_type, payload, shard, created_at)
select 1000 + 7 * n, 'task', fixture.id('many'), n, 'task.status.changed', '{}', 0, aivedio._clock() + make_interval(mins => n)
from generate_series(2, 60) as n;
select results_eq(
  $$
    select aivedio._first_id('outbox_events', aivedio._clock() + make_interval(mins => n))
    from unnest(array[3, 4, 30, 60, 61]) as n
  $$,
  $$ values (1014::bigint), (1021), (1203), (1413), (1420) $$,
  'a minute before the moment'
);
select is(aivedio._first_id('outbox_events', aivedio._clock() + interval '2 hours'), null, 'none after the last');
select is(aivedio._first_id('task_events', '-infinity'), (select min(event.event_id) from aivedio.task_events as event), 'all after the first');

-- Circuits
select aivedio._open_circuit('replicate', 'default', 'auth');
select ok(aivedio.reset_circuit('replicate', 'default', 'ops', 'the bill is paid'), 'an open circuit can be closed');
select is((select circuit.state from aivedio.provider_circuits as circuit), 'closed', 'at once');
select ok(not aivedio.reset_circuit('replicate', 'default', 'ops', 'again'), 'a closed one cannot');

-- Secrets
select aivedio.rotate_credential('replicate', 'default', 'env:ANOTHER_TOKEN', 'ops', 'it leaked');
select is(
  (select credential.secret_ref from aivedio.provider_credentials as credential where credential.provider = 'replicate'),
  'env:ANOTHER_TOKEN', 'a credential is another one from now on'
);
select throws_ok(
  $$ select aivedio.rotate_credential('replicate', 'default', 'r8_secret', 'ops', 'oops') $$, 'VC908', null,
  'a secret itself is refused'
);
select aivedio.rotate_webhook_secret('replicate', 'env:NEW_SECRET', 'ops', 'a year is over');
select is(
  (select provider.effective #> '{webhook,secrets}' from aivedio.providers as provider where provider.name = 'replicate'),
  '[{"ref": "env:NEW_SECRET", "version": "current"}, {"ref": "env:REPLICATE_WEBHOOK_SECRET", "version": "previous"}]',
  'signatures by the new secret and the one before are accepted'
);
select throws_ok(
  $$ select aivedio.rotate_webhook_secret('nobody', 'env:NEW_SECRET', 'ops', 'why') $$, 'VC301', null,
  'of a provider that is defined'
);
select set_eq(
  $$ select action.action from aivedio.operator_actions as action $$,
  $$ values ('replay_callback'), ('republish'), ('reset_circuit'), ('rotate_credential'), ('override_provider') $$,
  'all of it is audited'
);

select finish();
rollback;
