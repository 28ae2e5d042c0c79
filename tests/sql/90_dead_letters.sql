-- Stage 90: operators see dead letters, deliver them again or throw them away, and the alarm ends with the last one.
begin;
\ir support/fixtures.sql
select plan(14);

create function pg_temp.letter(p_event_id bigint)
returns bigint
language sql
as $letter$
  select (letter ->> 'id')::bigint
  from jsonb_array_elements(aivedio.dead_letters('media')) as letter
  where (letter ->> 'event_id')::bigint = p_event_id;
$letter$;

select aivedio.bus_publish(array(
  select row(n, fixture.id('a'), 'provider_succeeded', jsonb_build_object('event_id', n), 0)::aivedio.outbox_message
  from generate_series(1, 4) as n
));
select aivedio.bus_dead('media', message.msg_id, 'nobody can read it')
from aivedio.bus_read('media', 4, 30) as message
where message.body ->> 'event_id' <> '4';

select is(aivedio.bus_status() -> 'media' ->> 'dead', '3', 'dead letters are counted');
select is(aivedio.bus_status() -> 'media' ->> 'hidden', '1', 'beside what is in somebody''s hands');
select is(aivedio.bus_status() -> 'billing' ->> 'waiting', '4', 'and what waits');
select is(aivedio.pipeline_status() -> 'bus', aivedio.bus_status(), 'the whole path''s status has it all');
select is(
  aivedio.dead_letters('media', 1),
  jsonb_build_array(jsonb_build_object(
    'id', pg_temp.letter(1), 'error', 'nobody can read it', 'tries', 1, 'died_at', aivedio._clock(), 'event_id', 1,
    'task_id', fixture.id('a'), 'tag', 'provider_succeeded'
  )),
  'a dead letter is listed with its reason'
);
select is(jsonb_array_length(aivedio.dead_letters('media')), 3, 'all of them');

select is(
  aivedio.requeue_dead_letters('media', array[pg_temp.letter(1), pg_temp.letter(2)], 'ops@example.com', 'the reader is fixed'), 2,
  'some can be delivered again'
);
select results_eq(
  $$ select message.body ->> 'event_id', message.read_count, message.tag from aivedio.bus_read('media', 9, 30) as message $$,
  $$ values ('1', 1, 'provider_succeeded'), ('2', 1, 'provider_succeeded') $$,
  'in order, with no tries counted'
);
select is(
  (select alarm.resolved_at from aivedio.alarms as alarm where alarm.kind = 'dead_letter'), null,
  'the alarm stays while one is left'
);
select is(
  aivedio.purge_dead_letters('media', aivedio._clock(), 'ops@example.com', 'tests'), 0, 'the young are not purged'
);
select is(
  aivedio.purge_dead_letters('media', aivedio._clock() + interval '1 s', 'ops@example.com', 'tests'), 1,
  'the old are'
);
select is(
  (select alarm.resolved_at from aivedio.alarms as alarm where alarm.kind = 'dead_letter'), aivedio._clock(),
  'and the alarm ends with the last'
);
select is(aivedio.requeue_dead_letters('media', null, 'ops@example.com', 'again'), 0, 'nothing left is no error');
select results_eq(
  $$ select audit.action, audit.detail ->> 'messages' from aivedio.operator_actions as audit order by audit.id $$,
  $$ values ('requeue_dead_letters', '2'), ('purge_dead_letters', '1') $$,
  'all of it is audited'
);

select finish();
rollback;
