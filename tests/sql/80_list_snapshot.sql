-- Stage 80: pages of a snapshot cover every task once, newest first.
begin;
\ir support/fixtures.sql
select plan(5);

select fixture.job('task ' || number, case when number % 2 = 0 then 'running' else 'failed' end)
from generate_series(1, 5) as number;

create temporary table pages as
with recursive page (content) as (
  select aivedio.list_snapshot(fixture.id('tenant'), fixture.id('project'), null, 2)
  union all
  select aivedio.list_snapshot(fixture.id('tenant'), fixture.id('project'), (page.content ->> 'next')::uuid, 2)
  from page
  where page.content ->> 'next' is not null
)
select content from page;

select is((select count(*) from pages), 3::bigint, 'five tasks are three pages of two');
select results_eq(
  $$ select (task ->> 'id')::uuid from pages, jsonb_array_elements(pages.content -> 'tasks') as task $$,
  $$ select task.id from aivedio.generation_tasks as task order by task.id desc $$,
  'each task once, newest id first'
);
select is(
  jsonb_array_length(aivedio.list_snapshot(fixture.id('tenant'), fixture.id('project'), null, 100, 'running') -> 'tasks'),
  2,
  'a filter by status'
);
select is(
  jsonb_array_length(aivedio.list_snapshot(fixture.id('tenant'), fixture.id('project'), null, -5) -> 'tasks'),
  1,
  'a limit out of range is brought into it'
);
select is(
  (select task -> 'error' ->> 'code' from pages, jsonb_array_elements(pages.content -> 'tasks') as task
   where task ->> 'status' = 'failed' limit 1),
  'provider_failed',
  'a failure has its public code'
);

select finish();
rollback;
