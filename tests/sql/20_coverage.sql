-- Stage 20: where callbacks tell the ends, polls are rare; where they go missing, polls become closer and somebody is told.
begin;
\ir support/fixtures.sql
select plan(25);

create function pg_temp.at(p_after interval)
returns void
language sql
as $at$
  select set_config('aivedio.now', (timestamptz '2026-06-24 03:10:00+00' + p_after)::text, true);
$at$;

-- So many jobs that ended just now, the first p_told of them told by a callback.
create function pg_temp.ended(p_prefix text, p_count integer, p_told integer, p_provider text default 'replicate', p_status text default 'succeeded')
returns void
language plpgsql
as $ended$
begin
  for v_n in 1 .. p_count loop
    perform fixture.task(p_prefix || v_n, 'running', p_provider => p_provider);
    perform fixture.attempt(p_prefix || v_n, p_prefix || v_n, p_status, p_provider_task_id => p_provider || p_prefix || v_n, p_token => p_prefix || v_n);
    update aivedio.task_attempts as attempt
    set terminal_seen_by = case when v_n <= p_told then '{webhook}'::text[] else '{poll}' end,
        last_provider_at = aivedio._clock() - interval '3 seconds',
        last_callback_at = case when v_n <= p_told then aivedio._clock() - interval '1 second' end
    where attempt.id = fixture.id(p_prefix || v_n);
  end loop;
end;
$ended$;

create function pg_temp.coverage(p_provider text default 'replicate')
returns numeric
language sql
as $coverage$
  select round(known.coverage::numeric, 2) from aivedio.callback_coverage as known where known.provider = p_provider;
$coverage$;

-- The shortest and the longest wait in 15 polls of a running job that tell nothing new.
create function pg_temp.waits(p_low numeric, p_high numeric, p_name text default 'job')
returns boolean
language plpgsql
as $waits$
declare
  v_wait numeric;
begin
  for v_try in 1 .. 15 loop
    update aivedio.task_attempts as attempt
    set next_poll_at = aivedio._clock(), poll_lease_until = aivedio._clock() + interval '1 minute', lease_token = attempt.lease_token + 1
    where attempt.id = fixture.id(p_name);
    perform aivedio.settle_poll(fixture.id(p_name), attempt.lease_token, '{"kind": "response", "http_status": 200, "body": {"id": "p", "status": "processing"}}')
    from aivedio.task_attempts as attempt
    where attempt.id = fixture.id(p_name);
    select extract(epoch from attempt.next_poll_at - aivedio._clock()) into v_wait from aivedio.task_attempts as attempt where attempt.id = fixture.id(p_name);
    if v_wait not between p_low and p_high then
      raise notice 'waits % s', v_wait;
      return false;
    end if;
  end loop;
  return true;
end;
$waits$;

select fixture.task('job', 'running');
select fixture.attempt('job', 'job', 'running', p_provider_task_id => 'p-job', p_token => 'job');
select fixture.task('deaf job', 'running');
select fixture.attempt('deaf job', 'deaf job', 'running', p_provider_task_id => 'p-deaf');

select is(aivedio._watch_callbacks(), 0, 'without ends there is nothing to measure');
select is(pg_temp.waits(4, 18), true, 'and polls are as close as the profile says');

-- Callbacks tell all.
select pg_temp.ended('a', 20, 20);
select is(aivedio._watch_callbacks(), 0, 'a callback of what ended just now may still come');
select pg_temp.at('61 seconds');
select is((aivedio.upkeep('callbacks') ->> 'result')::integer, 1, 'a minute later it counts');
select is(pg_temp.coverage(), 1.00, 'all ends are told');
select is((select delay_p50_s from aivedio.callback_coverage), 2::double precision, 'and how late: two seconds after the provider''s own time');
select is(pg_temp.waits(16, 72), true, 'polls wait four times as long');
select is(pg_temp.waits(4, 18, 'deaf job'), true, 'but not those of a job that asked for no callbacks');
select is_empty($$ select 1 from aivedio.alarms where kind = 'callback_coverage' $$, 'no alarm');
select ok(aivedio.pipeline_status() #>> '{callbacks,replicate,coverage}' = '1', 'whoever looks at the pipeline sees it');

-- A few go missing.
select pg_temp.ended('b', 20, 16);
select pg_temp.at('125 seconds');
select aivedio._watch_callbacks();
select is(pg_temp.coverage(), 0.90, 'nine of ten are told');
select is(pg_temp.waits(10, 45), true, 'polls wait two and a half times as long');

-- Many go missing: P16.
select pg_temp.ended('c', 60, 24);
select pg_temp.at('190 seconds');
select aivedio._watch_callbacks();
select is(pg_temp.coverage(), 0.60, 'P16: six of ten are told');
select is(pg_temp.waits(4, 18), true, 'P16: polls are as close as the profile says');
select results_eq(
  $$ select subject, detail ->> 'ends', detail ->> 'covered' from aivedio.alarms where kind = 'callback_coverage' and resolved_at is null $$,
  $$ values ('replicate', '100', '60') $$, 'P16: and somebody is told'
);

-- They come back.
select pg_temp.at('200 seconds');
select pg_temp.ended('d', 200, 200);
select pg_temp.at('270 seconds');
select aivedio._watch_callbacks();
select is(pg_temp.coverage(), 1.00, 'the latest 200 ends count');
select is_empty($$ select 1 from aivedio.alarms where kind = 'callback_coverage' and resolved_at is null $$, 'the alarm closes');
select is(pg_temp.waits(16, 72), true, 'polls are rare again');
select pg_temp.at('871 seconds');
select is(pg_temp.waits(4, 18), true, 'a measurement that is ten minutes old counts for nothing');

-- What says nothing about callbacks.
select pg_temp.ended('e', 100, 0, p_status => 'canceled');
select pg_temp.at('940 seconds');
select aivedio._watch_callbacks();
select is(pg_temp.coverage(), 1.00, 'cancellations, and ends of jobs without callbacks, do not count');

-- Hints: the end is a poll's, but the callback came.
select aivedio.define_provider('hinting', (select jsonb_set(profile, '{webhook}', '{"signed": false}') from aivedio.providers where name = 'replicate'));
select pg_temp.ended('h', 20, 0, 'hinting');
update aivedio.task_attempts set last_callback_at = terminal_at - interval '4 seconds' where provider = 'hinting';
select pg_temp.at('1010 seconds');
select is(aivedio._watch_callbacks(), 2, 'each provider is measured');
select is(pg_temp.coverage('hinting'), 1.00, 'a hint shortly before the end was found is a callback that worked');
update aivedio.task_attempts set last_callback_at = terminal_at - interval '90 seconds' where provider = 'hinting';
select aivedio._watch_callbacks();
select is(pg_temp.coverage('hinting'), 0.00, 'one long before it told of something else');
select aivedio._hint_poll(attempt.id) from aivedio.task_attempts as attempt where attempt.provider = 'hinting';
select aivedio._watch_callbacks();
select is(pg_temp.coverage('hinting'), 1.00, 'and one that came after it was only slow');

select throws_ok(
  $$ update aivedio.callback_coverage set covered = ends + 1 $$, '23514', null, 'more cannot be told than there was'
);

select finish();
rollback;
