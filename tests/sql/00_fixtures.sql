-- Stage 00: the makers build every state that the tables admit, under a frozen clock.
begin;
\ir support/fixtures.sql
select plan(3);

select is(aivedio._clock(), timestamptz '2026-06-24 03:10:00+00', 'the clock stands still');

select lives_ok(
  format('select fixture.job(%L, %L)', status, status),
  format('a job can be %s', status)
)
from (values ('created'), ('ready')) as known (status);

select finish();
rollback;
