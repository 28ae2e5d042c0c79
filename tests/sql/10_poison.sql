-- Stage 10: a callback that cannot be applied ends dead, alone; an error of the server condemns nobody.
begin;
\ir support/fixtures.sql
select plan(25);

-- A profile function that fails as its payload asks for. It stands for any defect, of ours or of a payload.
set local role aivedio_owner;
create function aivedio._test_progress(p_payload jsonb)
returns numeric
language plpgsql
stable
set search_path = ''
as $test_progress$
begin
  if p_payload ? 'sqlstate' then
    raise exception 'as you wish' using errcode = p_payload ->> 'sqlstate', constraint = coalesce(p_payload ->> 'constraint', '');
  end if;
  return (p_payload ->> 'percent')::numeric;
end;
$test_progress$;
reset role;

select aivedio.define_provider('replicate', (
  select profile #- '{fields,progress_match}' #- '{fields,progress}' || '{"functions": {"progress": "aivedio._test_progress"}}'
  from aivedio.providers where name = 'replicate'
));

create function pg_temp.arrive(p_key text, p_task text, p_more jsonb default '{}', p_status text default 'processing')
returns void
language sql
as $arrive$
  select aivedio.accept_callbacks(array[row(
    0, 'replicate', jsonb_build_object('webhook-id', p_key),
    (jsonb_build_object('id', 'provider-' || p_task, 'status', p_status) || p_more)::text,
    '\x00', 'current', true, null, null, null
  )::aivedio.received_callback]);
$arrive$;

create function pg_temp.rows()
returns text
language sql
as $rows$
  select string_agg(concat_ws(' ', inbox.dedup_key, inbox.process_status, inbox.verdict, inbox.last_error_code), ', ' order by inbox.id)
  from aivedio.provider_callback_inbox as inbox;
$rows$;

create function pg_temp.process()
returns text
language sql
as $process$
  select format('claimed %s applied %s ignored %s dead %s', batch.claimed, batch.applied, batch.ignored, batch.dead)
  from aivedio.process_inbox('{0,1,2,3,4,5,6,7}') as batch;
$process$;

select fixture.job('a');
select fixture.job('b');
select fixture.job('c');

-- One poison row among good ones.
select pg_temp.arrive('1', 'a');
select pg_temp.arrive('2', 'b', '{"sqlstate": "22012"}');
select pg_temp.arrive('3', 'c');
select is(pg_temp.process(), 'claimed 3 applied 2 ignored 0 dead 1', 'the good rows are applied');
select is(pg_temp.rows(), '1 done applied, 2 dead 22012, 3 done applied', 'the bad one is dead with its SQLSTATE');
select results_eq(
  $$ select kind, subject, count from aivedio.alarms where kind like 'callback%' $$, $$ values ('callback_poison', '22012', 1::bigint) $$, 'and alarmed'
);
select is((select count(*) from aivedio.task_events), 2::bigint, 'the good rows made one event each, though they were applied twice');
select is(
  (select processed_at from aivedio.provider_callback_inbox where dedup_key = '2'), aivedio._clock(), 'dead is an end'
);
select is((select payload is not null from aivedio.provider_callback_inbox where dedup_key = '2'), true, 'its payload is kept for whoever looks');
select is(pg_temp.process(), 'claimed 0 applied 0 ignored 0 dead 0', 'it is not tried again');

-- Repaired and requeued, it is applied like any other.
select aivedio.override_provider('replicate', '{"functions": null}', 'ann', 'the function was wrong');
select aivedio.requeue_callback((select id from aivedio.provider_callback_inbox where dedup_key = '2'), 'ann', 'repaired');
select is(pg_temp.process(), 'claimed 1 applied 1 ignored 0 dead 0', 'after the repair it can be requeued');
select aivedio.override_provider('replicate', '{}', 'ann', 'back');
delete from aivedio.provider_callback_inbox;

-- First, last, and several.
select pg_temp.arrive('1', 'a', '{"sqlstate": "22012"}');
select pg_temp.arrive('2', 'a', p_status => 'canceled');
select pg_temp.arrive('3', 'b', '{"sqlstate": "VC402"}');
select pg_temp.arrive('4', 'b', p_status => 'canceled');
select pg_temp.arrive('5', 'c', '{"sqlstate": "P0001"}');
select is(pg_temp.process(), 'claimed 5 applied 2 ignored 0 dead 3', 'several bad rows are all set aside');
select is(pg_temp.rows(), '1 dead 22012, 2 done applied, 3 dead VC402, 4 done applied, 5 dead P0001', 'each with its own error');
delete from aivedio.provider_callback_inbox;

-- More than a few: the batch is cut off before the next bad row, and the rest waits for the next call.
select pg_temp.arrive(n::text, 'a', case when n % 2 = 0 then '{"sqlstate": "22012"}' else jsonb_build_object('percent', 30 + n) end)
from generate_series(1, 12) as n;
select is((aivedio.process_inbox('{0,1,2,3,4,5,6,7}')).dead, 4, 'a batch that breaks again and again is cut off');
select is((select count(*) from aivedio.provider_callback_inbox where process_status = 'pending'), 4::bigint, 'the rest waits');
select is((aivedio.process_inbox('{0,1,2,3,4,5,6,7}')).dead, 2, 'and is processed by the next call');
select is(
  pg_temp.rows() ~ '^1 done \w+, 2 dead 22012, 3 done \w+, 4 dead 22012, 5 done \w+, 6 dead 22012, 7 done \w+, 8 dead 22012, 9 done \w+, 10 dead 22012, 11 done \w+, 12 dead 22012$',
  true, 'nothing is skipped and nothing is lost'
);
delete from aivedio.provider_callback_inbox;

-- Errors of the server are raised again, and the batch is as it was.
select pg_temp.arrive('1', 'a', '{"percent": 60}');
select pg_temp.arrive('2', 'b', '{"sqlstate": "40P01"}');
select throws_ok($$ select pg_temp.process() $$, '40P01', 'as you wish', 'a deadlock is nobody''s fault');
select is(pg_temp.rows(), '1 pending, 2 pending', 'both rows wait as before');

select is(aivedio._is_passing(given.sqlstate, given.name), given.passing, given.why)
from (values
  ('40001', '', true, 'a serialisation failure passes'),
  ('55P03', '', true, 'a lock timeout passes'),
  ('53100', '', true, 'a full disk passes'),
  ('57014', '', true, 'a canceled statement passes'),
  ('23514', '', true, 'a missing partition passes'),
  ('23514', 'generation_tasks_progress', false, 'a violated check does not'),
  ('22P05', '', false, 'a character that cannot be stored does not'),
  ('23505', 'uq_provider_task', false, 'a unique key does not'),
  ('VC304', '', false, 'nor does one of our own codes')
) as given (sqlstate, name, passing, why);

select finish();
rollback;
