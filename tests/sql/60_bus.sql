-- Stage 60: the embedded bus hands each group what it asked for, again without an acknowledgement, not for ever.
begin;
\ir support/fixtures.sql
select plan(27);

create function pg_temp.message(p_task text, p_tag text, p_event_id bigint)
returns aivedio.outbox_message
language sql
as $message$
  select row(
    p_event_id, fixture.id(p_task), p_tag, jsonb_build_object('event_id', p_event_id), 0
  )::aivedio.outbox_message;
$message$;

create function pg_temp.read(p_group text, p_limit integer default 100)
returns text
language sql
as $read$
  select string_agg(
    format('%s:%s', message.body ->> 'event_id', message.read_count), ' ' order by message.msg_id
  )
  from aivedio.bus_read(p_group, p_limit, 30) as message;
$read$;

create function pg_temp.bus_id(p_group text, p_event_id bigint)
returns bigint
language plpgsql
as $bus_id$
declare
  v_id bigint;
begin
  execute format('select msg_id from pgmq.q_aivedio_%s where message ->> ''event_id'' = $1', p_group)
  into v_id
  using p_event_id::text;
  return v_id;
end;
$bus_id$;

-- Queues follow the groups.
select is_empty($$ select aivedio.ensure_bus() $$, 'every group has its queue already');
insert into aivedio.consumer_groups (name, tags, max_tries) values ('audit', array['failed'], 2);
select results_eq($$ select aivedio.ensure_bus() $$, $$ values ('audit') $$, 'a new group gets one');
select is_empty($$ select aivedio.ensure_bus() $$, 'once');

-- Publishing.
select is(aivedio.bus_publish('{}'), 0, 'nothing to publish is no error');
select is(
  aivedio.bus_publish(array[
    pg_temp.message('a', 'submitted', 1),
    pg_temp.message('b', 'provider_succeeded', 2),
    pg_temp.message('a', 'processing_media', 3),
    pg_temp.message('a', 'beat', 4)
  ]),
  4,
  'all are taken, also one that only some groups want'
);
select is(pg_temp.read('dispatcher', 3), '1:1 2:1 3:1', 'a group without tags gets everything, in order, up to the limit');
select is(pg_temp.read('dispatcher'), '4:1', 'and what is taken is hidden');
select is(pg_temp.read('media'), '2:1', 'a group with tags gets those');
select is(pg_temp.read('billing'), '1:1 2:1', 'and each group its own copy');
select is(pg_temp.read('audit'), null, 'or nothing');
select throws_ok(
  $$ select aivedio.bus_publish(array[
    pg_temp.message('a', 'submitted', 5),
    row(6, fixture.id('a'), 'submitted', jsonb_build_object('text', repeat('x', 4194304)), 0)::aivedio.outbox_message
  ]) $$,
  'VC613', 'message is too large for the bus', 'a message that no bus takes is refused'
);
select is(pg_temp.read('dispatcher'), null, 'with its whole batch');

-- Acknowledging, and the lack of it.
select is(
  aivedio.bus_ack('dispatcher', array[pg_temp.bus_id('dispatcher', 1), pg_temp.bus_id('dispatcher', 2)]), 2,
  'acknowledged messages end'
);
select is(aivedio.bus_ack('dispatcher', array[1::bigint]), 0, 'ending one twice is no error');
select ok(
  aivedio.bus_retry('dispatcher', pg_temp.bus_id('dispatcher', 3), 5), 'a message can be put back for a while'
);
set local aivedio.now = '2026-06-24 03:10:06+00';
select is(pg_temp.read('dispatcher'), '3:2', 'and comes when the while is over');
select aivedio.bus_retry('dispatcher', pg_temp.bus_id('dispatcher', 3), 300);
set local aivedio.now = '2026-06-24 03:10:31+00';
select is(pg_temp.read('dispatcher'), '4:2', 'without an acknowledgement it comes when it is no longer hidden');
select is(aivedio.bus_retry('dispatcher', 999999, 5), false, 'one that is gone cannot be put back');

-- Dead letters.
select ok(aivedio.bus_dead('dispatcher', pg_temp.bus_id('dispatcher', 3), 'unreadable'), 'a message can be buried');
select is(aivedio.bus_dead('dispatcher', 999999, 'unreadable'), false, 'not one that is gone');
select results_eq(
  $$ select message ->> 'event_id', headers ->> 'error' from pgmq.a_aivedio_dispatcher $$,
  $$ values ('3', 'unreadable') $$,
  'it is kept with the reason'
);
select is(
  (select alarm.detail ->> 'messages' from aivedio.alarms as alarm where alarm.kind = 'dead_letter' and alarm.subject = 'dispatcher'),
  '1', 'and an operator is told'
);

select aivedio.bus_publish(array[pg_temp.message('c', 'failed', 7)]);
select is(pg_temp.read('audit'), '7:1', 'a message whose reader dies each time');
set local aivedio.now = '2026-06-24 03:12:00+00';
select is(pg_temp.read('audit'), '7:2', 'is handed out max_tries times');
set local aivedio.now = '2026-06-24 03:13:00+00';
select is(pg_temp.read('audit'), null, 'and no more');
select results_eq(
  $$ select message ->> 'event_id', headers ->> 'error' from pgmq.a_aivedio_audit $$,
  $$ values ('7', 'read 2 times and never acknowledged') $$,
  'but becomes a dead letter'
);

select throws_ok(
  $$ select * from aivedio.bus_read('nobody', 1, 30) $$,
  'VC612', 'there is no such consumer group', 'an unknown group is refused'
);

select finish();
rollback;
