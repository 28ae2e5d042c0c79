-- Stage 80: a reader near the head costs the same however much lies before it (C17).
begin;
\ir support/fixtures.sql
select plan(5);

select fixture.job('task');

-- 60,000 events of the project and of another one, in three partitions.
insert into aivedio.task_events (
  event_id, prev_event_id, tenant_id, project_id, task_id, task_version, event_type, public_payload, source
)
select
  part * 100000000 + number * 2 + side,
  case when number = 1 then greatest(0, (part - 1) * 100000000 + 20000 + side) * (part > 0)::integer
       else part * 100000000 + (number - 1) * 2 + side end,
  fixture.id('tenant'),
  case side when 0 then fixture.id('project') else fixture.id('other') end,
  case side when 0 then fixture.id('task') else fixture.id('elsewhere') end,
  part * 10000 + number + 1, 'task.status.changed', '{"status": "running"}', 'command'
from generate_series(0, 2) as part, generate_series(1, 10000) as number, generate_series(0, 1) as side;
update aivedio.project_streams as stream
set last_event_id = 200020000
where stream.project_id = fixture.id('project');
analyze aivedio.task_events;

create function pg_temp.touched(out sequential bigint, out fetched bigint)
language sql
as $touched$
  select coalesce(sum(seq_tup_read), 0), coalesce(sum(idx_tup_fetch), 0)
  from pg_stat_xact_user_tables
  where schemaname = 'aivedio' and relname ~ '^task_events_p';
$touched$;
create temporary table before as select * from pg_temp.touched();

select is(
  (select cardinality(page.events) from aivedio.read_events_after(fixture.id('project'), 200019994) as page),
  3, 'three events behind the head'
);
select is(
  (select page.complete from aivedio.read_events_after(fixture.id('project'), 100019994, 10) as page),
  true, 'a page over the border of two partitions'
);
select is(
  (select cardinality(page.events) from aivedio.read_events_before(fixture.id('project'), 200020000, 5) as page),
  5, 'backwards, too'
);
select is(
  (select touched.sequential - before.sequential from pg_temp.touched(), before),
  0::bigint, 'no partition is scanned'
);
select cmp_ok(
  (select touched.fetched - before.fetched from pg_temp.touched(), before),
  '<', 60::bigint, 'and little more is fetched than is answered'
);

select finish();
rollback;
