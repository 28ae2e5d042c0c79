-- Stage 60: what a bus outside the database needs from it: its groups, and a home for its dead letters.
begin;
\ir support/fixtures.sql
select plan(11);

create function pg_temp.bury(p_event_id bigint, p_error text default 'nobody can read it')
returns boolean
language sql
as $bury$
  select aivedio.bus_bury(
    'media', fixture.id('a'), 'provider_succeeded', jsonb_build_object('event_id', p_event_id), 3, p_error
  );
$bury$;

select is(aivedio.bus_group('dispatcher') -> 'tags', 'null', 'the dispatcher asks for everything');
select is(aivedio.bus_group('media') -> 'tags', '["provider_succeeded"]', 'media for one status');
select is(aivedio.bus_group('media') -> 'max_tries', '16', 'and is tried so often');
select throws_ok(
  $$ select aivedio.bus_group('nobody') $$, 'VC612', 'there is no such consumer group', 'an unknown group is refused'
);
select results_eq(
  $$ select aivedio.bus_groups() $$, $$ values ('billing'), ('dispatcher'), ('media') $$, 'groups are listed by name'
);

select is(pg_temp.bury(1), true, 'a message becomes a dead letter');
select is(pg_temp.bury(1, 'once more'), false, 'once, however often it is told');
select is(
  aivedio.dead_letters('media') #- '{0,id}',
  jsonb_build_array(jsonb_build_object(
    'error', 'nobody can read it', 'tries', 3, 'died_at', aivedio._clock(), 'event_id', 1,
    'task_id', fixture.id('a'), 'tag', 'provider_succeeded'
  )),
  'operators see it as they see those of the embedded bus'
);
select is(
  (select alarm.subject from aivedio.alarms as alarm where alarm.kind = 'dead_letter' and alarm.resolved_at is null),
  'media', 'and are told'
);
select is(
  aivedio.requeue_dead_letters('media', null, 'ops@example.com', 'the reader is fixed'), 1, 'they can have it delivered again'
);
select results_eq(
  $$ select message.task_id, message.tag, message.body ->> 'event_id' from aivedio.bus_read('media', 9, 30) as message $$,
  $$ values (fixture.id('a'), 'provider_succeeded', '1') $$,
  'from the queue in the database'
);

select finish();
rollback;
