-- Stage 80: lost_access answers, in one question, which of many grants no longer hold.
begin;
\ir support/fixtures.sql
select plan(4);

select fixture.project();
select fixture.member(p_user => 'user');

create function pg_temp.lost(p_users uuid[], p_issued timestamptz default '2026-06-24 03:00:00+00')
returns integer[]
language sql
as $lost$
  select coalesce(array_agg(place order by place), '{}')
  from aivedio.lost_access(
    array_fill(fixture.id('tenant'), array[cardinality(p_users)]),
    array_fill(fixture.id('project'), array[cardinality(p_users)]),
    p_users,
    array_fill('s'::text, array[cardinality(p_users)]),
    array_fill(p_issued, array[cardinality(p_users)]),
    array_fill(false, array[cardinality(p_users)])
  ) as place;
$lost$;

select is(
  pg_temp.lost(array[fixture.id('user'), fixture.id('stranger'), fixture.id('user'), fixture.id('other')]),
  array[2, 4],
  'the places of those who are not members'
);

select is(pg_temp.lost('{}'), '{}'::integer[], 'nobody asked about, nobody lost');

select lives_ok(
  $$ select aivedio.revoke_access('user', fixture.id('user')::text, 'test', 'because') $$,
  'a revocation'
);

select is(
  pg_temp.lost(array[fixture.id('stranger'), fixture.id('user')]),
  array[1, 2],
  'voids what was granted before it'
);

select finish();
rollback;
