-- Stage 10: a callback without an attempt is tried again, alarmed, and ends dead; it is never dropped.
begin;
\ir support/fixtures.sql
select plan(18);

create function pg_temp.at(p_after interval)
returns void
language sql
as $at$
  select set_config('aivedio.now', (timestamptz '2026-06-24 03:10:00+00' + p_after)::text, true);
$at$;

create function pg_temp.process()
returns text
language sql
as $process$
  select format('claimed %s applied %s retried %s dead %s', batch.claimed, batch.applied, batch.retried, batch.dead)
  from aivedio.process_inbox('{0,1,2,3,4,5,6,7}') as batch;
$process$;

select aivedio.accept_callbacks(array[fixture.delivery('m1', 'late')]);

-- W22: it waits.
select is(pg_temp.process(), 'claimed 1 applied 0 retried 1 dead 0', 'W22: an unknown id is put off');
select results_eq(
  $$
    select process_status, verdict, retry_count, next_retry_at - aivedio._clock() between interval '0.8 s' and interval '1.2 s', processed_at
    from aivedio.provider_callback_inbox
  $$,
  $$ values ('retry', 'orphan', 1, true, null::timestamptz) $$,
  'W22: for a second, give or take a fifth'
);
select is(pg_temp.process(), 'claimed 0 applied 0 retried 0 dead 0', 'and is left alone until then');
select is_empty($$ select 1 from aivedio.alarms $$, 'the first tries are ordinary');

-- Its attempt appears: 12.7.4.
select fixture.job('late');
select pg_temp.at('2 seconds');
select is(pg_temp.process(), 'claimed 1 applied 1 retried 0 dead 0', 'W22: once its attempt is known, it is applied');
select results_eq(
  $$ select process_status, verdict, attempt_id from aivedio.provider_callback_inbox $$,
  $$ values ('done', 'applied', fixture.id('attempt of late')) $$,
  'and its row says so'
);

-- One that never finds its attempt.
select pg_temp.at('0');
select aivedio.accept_callbacks(array[fixture.delivery('m2', 'nowhere')]);
create temporary table tries (n integer, waited interval);

do $tries$
declare
  v_next timestamptz := aivedio._clock();
begin
  for v_try in 1 .. 12 loop
    perform set_config('aivedio.now', v_next::text, true);
    perform aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
    insert into tries
    select v_try, inbox.next_retry_at - v_next from aivedio.provider_callback_inbox as inbox where inbox.dedup_key = 'm2';
    select inbox.next_retry_at into v_next from aivedio.provider_callback_inbox as inbox where inbox.dedup_key = 'm2';
  end loop;
  perform set_config('aivedio.now', v_next::text, true);
end;
$tries$;

select is(
  (select bool_and(waited between make_interval(secs => least(600, 2 ^ (n - 1)) * 0.8) and make_interval(secs => least(600, 2 ^ (n - 1)) * 1.2)) from tries),
  true, 'the delays double up to the cap, give or take a fifth'
);
select cmp_ok((select sum(waited) from tries), '>', interval '20 minutes', 'it is given more than twenty minutes');
select is((select process_status from aivedio.provider_callback_inbox where dedup_key = 'm2'), 'retry', 'after twelve tries it still waits');
select is((select count from aivedio.alarms where kind = 'callback_orphan' and subject = 'replicate'), 9::bigint, 'W22: from the fourth try on it is alarmed');

select is(pg_temp.process(), 'claimed 1 applied 0 retried 0 dead 1', 'then it is dead');
select results_eq(
  $$ select process_status, verdict, last_error_code, payload is not null from aivedio.provider_callback_inbox where dedup_key = 'm2' $$,
  $$ values ('dead', 'orphan', 'orphan', true) $$,
  'W22: dead, and still there'
);
select results_eq(
  $$ select kind, subject, state from aivedio.reconciliation_cases $$,
  $$ values ('orphan', 'replicate:provider-nowhere', 'open') $$,
  'W22: as a case'
);
select results_eq(
  $$ select verdict, provider, attempt_id from aivedio.observations where inbox_id = (select id from aivedio.provider_callback_inbox where dedup_key = 'm2') $$,
  $$ values ('orphan', 'replicate', null::uuid) $$,
  'and in the ledger'
);

-- An operator who knows more can bring it back.
select fixture.job('nowhere');
select is(aivedio.requeue_callback((select id from aivedio.provider_callback_inbox where dedup_key = 'm2'), 'ann', 'it was ours'), true, 'a dead callback can be requeued');
select is(pg_temp.process(), 'claimed 1 applied 1 retried 0 dead 0', 'and is applied');

-- Orphans hold up nobody, and belong to shard 0.
select aivedio.accept_callbacks(array[fixture.delivery('m3', 'missing'), fixture.delivery('m4', 'nowhere', 'succeeded')]);
select results_eq(
  $$ select applied, retried from aivedio.process_inbox('{0,1,2,3,4,5,6,7}') $$, $$ values (1, 1) $$, 'the callback behind an orphan is applied'
);
select aivedio.accept_callbacks(array[fixture.delivery('m5', 'missing too')]);
select is((aivedio.process_inbox('{1,2,3,4,5,6,7}')).foreign_shards, '{0}'::smallint[], 'an orphan is the work of shard 0');

select finish();
rollback;
