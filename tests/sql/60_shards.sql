-- Stage 60: a relay reads and marks its shards together, and learns how many it may own.
begin;
\ir support/fixtures.sql
select plan(10);

select fixture.job(name) from unnest(array['a', 'b', 'c']) as name;
select aivedio.apply_observation(fixture.observation(fixture.id('attempt of ' || name), 'queued'))
from unnest(array['a', 'b', 'c']) as name;
select aivedio.apply_observation(fixture.observation(fixture.id('attempt of a'), 'running'));
update aivedio.outbox_events as owed
set shard = case owed.aggregate_id when fixture.id('a') then 2 when fixture.id('b') then 5 else 6 end;

create function pg_temp.owed(p_shards smallint[], p_limit integer default 100)
returns text
language sql
as $owed$
  select string_agg(format('%s:%s', owed.shard, owed.tag), ' ')
  from aivedio.read_shards(p_shards, p_limit) as owed;
$owed$;

select is(aivedio.fair_share(), 8::smallint, 'a relay alone may own every shard');
select is(aivedio.fair_share(), 8::smallint, 'and is counted once');

select aivedio.own_shard(shard::smallint) from unnest(array[2, 5]) as shard;
select is(pg_temp.owed('{2,5}'), '2:queued 2:running 5:queued', 'shards are read one after the other');
select is(pg_temp.owed('{5,2}'), '5:queued 2:queued 2:running', 'in the order asked for');
select is(pg_temp.owed('{2,5}', 1), '2:queued', 'up to the limit');
select is(pg_temp.owed('{5,2}', 2), '5:queued 2:queued', 'over all of them');
select is(pg_temp.owed('{}'), null, 'no shard, no rows');

select is(
  aivedio.mark_shards('{2,5}', array(select owed.id from aivedio.outbox_events as owed)), 3,
  'rows are marked in the given shards only'
);
select is(pg_temp.owed('{2,5}'), null, 'and not read again');
select is(
  aivedio.mark_shards('{2,5}', array(select owed.id from aivedio.outbox_events as owed)), 0, 'nor marked again'
);

select aivedio.release_shard(shard::smallint) from unnest(array[2, 5]) as shard;
select finish();
rollback;
