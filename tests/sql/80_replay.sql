-- Stage 80: a reader after a cursor gets all events or is told to take a snapshot; there is no third answer.
begin;
\ir support/fixtures.sql
select plan(19);

select fixture.job('task');
select fixture.event(10, 0, 'task', 2), fixture.event(20, 10, 'task', 3), fixture.event(30, 20, 'task', 4);
select fixture.job('elsewhere', p_project => 'other');
select fixture.event(15, 0, 'elsewhere', 2);

create function pg_temp.after(p_cursor bigint, p_limit integer default 500)
returns text
language sql
as $after$
  select case when page.complete then 'complete' else page.reason end || ' '
    || coalesce((select string_agg(event.event_id::text, ',') from unnest(page.events) as event), '-')
    || ' head ' || page.last_event_id || case when page.more then ' more' else '' end
  from aivedio.read_events_after(fixture.id('project'), p_cursor, p_limit) as page;
$after$;

select is(pg_temp.after(0), 'complete 10,20,30 head 30', 'from the beginning everything');
select is(pg_temp.after(10), 'complete 20,30 head 30', 'after a cursor what follows it');
select is(pg_temp.after(10, 1), 'complete 20 head 30 more', 'a page at a time');
select is(pg_temp.after(30), 'complete - head 30', 'at the head nothing');
select is(pg_temp.after(31), 'ahead - head 30', 'a cursor from the future is reset');
select is(pg_temp.after(15), 'unknown - head 30', 'another project''s cursor is reset');

delete from aivedio.task_events as event where event.event_id = 10;
select is(pg_temp.after(0), 'pruned - head 30', 'a cursor before the oldest event is reset');
select is(pg_temp.after(10), 'complete 20,30 head 30', 'but not the one that the oldest event follows');
delete from aivedio.task_events as event where event.event_id = 20;
select is(pg_temp.after(10), 'pruned - head 30', 'a hole is never passed over');
delete from aivedio.task_events as event where event.event_id = 30;
select is(pg_temp.after(20), 'pruned - head 30', 'nor are pruned events that nothing follows');
select is(pg_temp.after(30), 'complete - head 30', 'the head stays the head');
select is(
  (select page.complete from aivedio.read_events_after(fixture.id('nobody'), 0) as page), true,
  'a project without a stream has nothing after 0'
);
select is(
  (select page.reason from aivedio.read_events_after(fixture.id('nobody'), 5) as page), 'ahead',
  'and everything else is ahead of it'
);

-- Backwards, for readers older than a gateway's memory.
select fixture.event(40, 30, 'task', 5), fixture.event(50, 40, 'task', 6), fixture.event(60, 50, 'task', 7);
select results_eq(
  $$ select page.complete, page.more, (select array_agg(event.event_id) from unnest(page.events) as event)
     from aivedio.read_events_before(fixture.id('project'), 60, 2) as page $$,
  $$ values (true, true, array[50, 60]::bigint[]) $$,
  'the newest events up to an id, oldest first'
);
select is(
  (select page.complete from aivedio.read_events_before(fixture.id('project'), 55, 2) as page), false,
  'which must be an event''s id'
);

-- Snapshots and the heads they continue from.
select is(
  (select aivedio.read_snapshot(fixture.id('tenant'), fixture.id('project'), fixture.id('task')) ->> 'last_event_id'),
  '60',
  'a task''s snapshot carries its project''s head, not its own last event'
);
select is(
  aivedio.read_snapshot(fixture.id('stranger'), fixture.id('project'), fixture.id('task')), null,
  'another tenant sees nothing'
);
select is(
  aivedio.list_snapshot(fixture.id('stranger'), fixture.id('project')),
  '{"tasks": [], "last_event_id": 0, "next": null}'::jsonb,
  'not even the head'
);
select set_eq(
  $$ select moved.project_id, moved.last_event_id from aivedio.streams_moved(14) as moved $$,
  $$ values (fixture.id('project'), 60::bigint), (fixture.id('other'), 15::bigint) $$,
  'one look tells which streams moved'
);

select finish();
rollback;
