-- Stage 60: the owner of a shard reads its rows in order, marks what the broker took, parks what it refuses.
begin;
\ir support/fixtures.sql
select plan(14);

select fixture.job('a');
select fixture.job('b');
select aivedio.apply_observation(fixture.observation(fixture.id('attempt of a'), 'queued'));
select aivedio.apply_observation(fixture.observation(fixture.id('attempt of b'), 'queued'));
select aivedio.apply_observation(fixture.observation(fixture.id('attempt of a'), 'running'));
-- Both tasks in one shard, whatever their ids hash to.
update aivedio.outbox_events set shard = 3;

create function pg_temp.tags()
returns text
language sql
as $tags$
  select string_agg(case message.task_id when fixture.id('a') then 'a:' else 'b:' end || message.tag, ' ' order by message.id)
  from aivedio.read_outbox(3::smallint) as message;
$tags$;

create function pg_temp.outbox(p_task text, p_version bigint)
returns bigint[]
language sql
as $outbox$
  select array_agg(pending.id) from aivedio.outbox_events as pending
  where pending.aggregate_id = fixture.id(p_task) and pending.aggregate_version = p_version;
$outbox$;

select ok(aivedio.own_shard(3::smallint), 'a free shard can be owned');
select is(pg_temp.tags(), 'a:queued b:queued a:running', 'rows come in the order of their writing');

select is(aivedio.mark_published(3::smallint, pg_temp.outbox('b', 2)), 1, 'what the broker took is marked');
select is(aivedio.mark_published(3::smallint, pg_temp.outbox('b', 2)), 0, 'once');
select is(aivedio.mark_published(4::smallint, pg_temp.outbox('a', 2)), 0, 'and only in its own shard');
select is(pg_temp.tags(), 'a:queued a:running', 'and is not read again');

select is(aivedio.mark_unsent(3::smallint, pg_temp.outbox('a', 2), 'too large'), 0, 'a refusal counts a try');
select is(pg_temp.tags(), null, 'and holds back the later rows of its task');

set local aivedio.now = '2026-06-24 03:20:00+00';
select is(pg_temp.tags(), 'a:queued a:running', 'until the delay is over');

select aivedio.mark_unsent(3::smallint, pg_temp.outbox('a', 2), 'too large') from generate_series(1, 3);
select is(aivedio.mark_unsent(3::smallint, pg_temp.outbox('a', 2), 'too large'), 1, 'the fifth refusal parks the row');
select is(pg_temp.tags(), 'a:running', 'then the later rows flow');
select is(
  (select message.body ->> 'after_parked' from aivedio.read_outbox(3::smallint) as message), 'true',
  'flagged, because one before them is missing'
);
select is(
  (select alarm.kind from aivedio.alarms as alarm), 'outbox_parked', 'and an operator is told'
);

select ok(
  aivedio.requeue_outbox((pg_temp.outbox('a', 2))[1], 'ops@example.com', 'limit raised'),
  'who can send it again'
);

select aivedio.release_shard(3::smallint);
select finish();
rollback;
