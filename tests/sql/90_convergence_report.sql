-- Stage 90: the ledger answers who was first, how late, how disordered, and how many polls were in vain.
begin;
\ir support/fixtures.sql
select plan(9);

select fixture.job('fast', 'running');
select fixture.job('slow', 'running');
select fixture.job('silent', 'running');
update aivedio.task_attempts set poll_count = 10, unchanged_polls = 8, throttled_polls = 1;

create function pg_temp.see(p_task text, p_status text, p_source text)
returns text
language sql
as $see$
  select (aivedio.apply_observation(fixture.observation(fixture.id('attempt of ' || p_task), p_status, p_source))).verdict;
$see$;

set local aivedio.now = '2026-06-24 03:11:00+00';
select pg_temp.see('fast', 'succeeded', 'webhook'), pg_temp.see('fast', 'queued', 'webhook');
select pg_temp.see('fast', 'succeeded', 'webhook'), pg_temp.see('fast', 'succeeded', 'reconcile');
set local aivedio.now = '2026-06-24 03:11:08+00';
select pg_temp.see('fast', 'succeeded', 'poll');
set local aivedio.now = '2026-06-24 03:14:00+00';
select pg_temp.see('slow', 'failed', 'poll');

create temporary table report as
select * from aivedio.convergence_report('2026-06-24 00:00+00', '2026-06-25 00:00+00');

select results_eq(
  $$ select report.day, report.provider, report.attempts, report.ended from report $$,
  $$ values (date '2026-06-24', 'replicate', 3::bigint, 2::bigint) $$,
  'one row a day, provider and model'
);
select results_eq(
  $$ select report.callback_first, report.poll_first, report.callback_lead, report.callback_coverage from report $$,
  $$ values (1::bigint, 1::bigint, interval '8 seconds', 0.5) $$,
  'who told the end first, by how much, and how many ends a callback told'
);
select results_eq(
  $$ select report.duration_p50, report.duration_p95 from report $$,
  $$ values (interval '2 minutes 30 seconds', interval '3 minutes 51 seconds') $$,
  'how long jobs take'
);
select results_eq(
  $$ select report.out_of_order, report.conflicts, report.stale_attempts from report $$,
  $$ values (1::bigint, 0::bigint, 0::bigint) $$,
  'how disordered observations came'
);
select results_eq(
  $$ select report.polls, report.polls_unchanged, report.polls_throttled from report $$,
  $$ values (30::bigint, 0.8, 0.1) $$,
  'how many polls changed nothing, or were refused'
);
select is((select report.callbacks_repeated from report), 1::bigint, 'how many callbacks told nothing new; what others repeat is not counted');

-- Late by the provider's clock, callbacks only.
set local aivedio.now = '2026-06-26 12:00:00+00';
select fixture.task('timed', 'running', p_model => 'other');
select fixture.attempt('timed', 'attempt of timed', 'running');
create function pg_temp.late(p_lag interval, p_source text default 'webhook')
returns text
language plpgsql
as $late$
declare
  v_observation aivedio.provider_observation := fixture.observation(fixture.id('attempt of timed'), null, p_source);
begin
  v_observation.provider_occurred_at := aivedio._clock() - p_lag;
  return (aivedio.apply_observation(v_observation)).verdict;
end;
$late$;
select pg_temp.late('1 second'), pg_temp.late('2 seconds'), pg_temp.late('3 seconds'), pg_temp.late('1 hour', 'poll');
select results_eq(
  $$ select report.model, report.lag_p50, report.lag_p95, report.unknown_words
     from aivedio.convergence_report('2026-06-26 00:00+00', '2026-06-27 00:00+00') as report $$,
  $$ values ('other', interval '2 seconds', interval '2.9 seconds', 4::bigint) $$,
  'how late callbacks come'
);
select is_empty(
  $$ select report.lag_p50 from report where report.lag_p50 is not null $$, 'which nobody knows where the provider tells no time'
);
select is_empty(
  $$ select * from aivedio.convergence_report('2026-06-25 00:00+00', '2026-06-26 00:00+00') $$,
  'a day without attempts has no row'
);

select finish();
rollback;
