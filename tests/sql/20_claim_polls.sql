-- Stage 20: who is polled when: leases, order, and four levels of quotas that are never overdrawn.
begin;
\ir support/fixtures.sql
select plan(51);

create function pg_temp.at(p_after interval)
returns void
language sql
as $at$
  select set_config('aivedio.now', (timestamptz '2026-06-24 03:10:00+00' + p_after)::text, true);
$at$;

-- A job that is due for a poll since so many seconds.
create function pg_temp.due(
  p_name text, p_since interval default '0', p_tenant text default 'tenant', p_project text default null,
  p_provider text default 'replicate', p_model text default 'lumen/video-1'
)
returns void
language plpgsql
as $due$
begin
  perform fixture.task(p_name, 'running', p_project => coalesce(p_project, 'project of ' || p_tenant), p_tenant => p_tenant, p_provider => p_provider, p_model => p_model);
  perform fixture.attempt(p_name, p_name, 'running', p_provider_task_id => 'p-' || p_name, p_next_poll_at => aivedio._clock() - p_since);
end;
$due$;

-- The names of what is claimed, in order.
create function pg_temp.claim(p_limit integer default 100)
returns text
language sql
as $claim$
  select coalesce(string_agg(substring(request.url from 'p-(.*)$'), ' ' order by request.place), '')
  from aivedio.claim_polls('worker', p_limit) with ordinality as request (attempt_id, token, provider, credential, method, url, h, b, a, t, m, l, tr, place);
$claim$;

create function pg_temp.forget()
returns void
language sql
as $forget$
  delete from aivedio.poll_quotas;
  update aivedio.task_attempts set next_poll_at = null, poll_lease_until = null;
$forget$;

-- Nothing to do.
select is(pg_temp.claim(), '', 'nothing is due');
select is(aivedio.next_poll_in(), null, 'nothing is scheduled');

-- One at a time.
select pg_temp.due('a');
select is(aivedio.next_poll_in(), interval '50 milliseconds', 'one is due: the edge need not wait');
select is(pg_temp.claim(), 'a', 'it is handed out');
select results_eq(
  $$ select lease_token, poll_lease_until, leased_by from aivedio.task_attempts where id = fixture.id('a') $$,
  $$ values (1::bigint, aivedio._clock() + interval '60 seconds', 'worker') $$,
  'with a lease and a token'
);
select is(pg_temp.claim(), '', 'P13: nobody else gets it');
select is(aivedio.next_poll_in(), interval '60 seconds', 'until its lease ends');
select pg_temp.at('61 seconds');
select results_eq($$ select lease_token from aivedio.claim_polls('other', 10) $$, $$ values (2::bigint) $$, 'P11: a lease that ran out is handed to another, with a new token');
select pg_temp.forget();
select pg_temp.at('0');

-- What is not due.
select pg_temp.due('b', '-10 seconds');
select is(pg_temp.claim(), '', 'what is due later waits');
select is(aivedio.next_poll_in(), interval '10 seconds', 'the edge may rest that long');
update aivedio.task_attempts set next_poll_at = aivedio._clock(), provider_task_id = null where id = fixture.id('b');
select is(pg_temp.claim(), '', 'without the provider''s id there is nothing to ask');
select pg_temp.forget();
select aivedio.define_provider('deaf', (select profile || '{"poll": null}' from aivedio.providers where name = 'replicate'));
select pg_temp.due('c', p_provider => 'deaf');
select is(pg_temp.claim(), '', 'a provider without queries is never asked');
select pg_temp.forget();

-- Order: the longest due first; the wait of the watched and the nearly finished counts threefold, with a head start.
select pg_temp.due('old', '30 seconds');
select pg_temp.due('new', '1 second');
select pg_temp.due('watched', '15 seconds', p_project => 'watched project');
select pg_temp.due('nearly', '10 seconds');
select aivedio.watch_projects(array[fixture.id('watched project')]);
update aivedio.task_attempts set progress = 85 where id = fixture.id('nearly');
select is(pg_temp.claim(), 'watched nearly old new', '12.11.2: watched and nearly finished jobs first');
select pg_temp.forget();
update aivedio.task_attempts set next_poll_at = aivedio._clock() - interval '60 seconds' where id = fixture.id('old');
update aivedio.task_attempts set next_poll_at = aivedio._clock() - interval '10 seconds' where id = fixture.id('watched');
select is(pg_temp.claim(1), 'old', '12.11.2: but who has waited long enough goes before them');
select pg_temp.forget();

-- Between tenants in turn.
select pg_temp.due('big-' || n, interval '1 minute' - n * interval '1 second', 'big') from generate_series(1, 6) as n;
select pg_temp.due('small', '1 second', 'small');
select is(pg_temp.claim(3), 'big-1 small big-2', 'P14: a tenant with many jobs does not keep a small one waiting');
select pg_temp.forget();

-- Quotas: each level holds.
create function pg_temp.crowd(p_count integer, p_prefix text, p_tenant text default 'crowd', p_model text default 'm', p_provider text default 'replicate')
returns void
language sql
as $crowd$
  select pg_temp.due(p_prefix || '-' || n, n * interval '1 millisecond', p_tenant, p_provider => p_provider, p_model => p_model) from generate_series(1, p_count) as n;
$crowd$;
create function pg_temp.count_claim()
returns bigint
language sql
as $count_claim$
  select count(*) from aivedio.claim_polls('worker', 1000);
$count_claim$;

update aivedio.settings set value = '70' where name = 'poll_rate_platform';
update aivedio.settings set value = '10000' where name = 'poll_rate_tenant';
select aivedio.override_provider('replicate', '{"quota": {"provider": 10000, "model": 10000}}', 'test', 'large quotas');
select pg_temp.crowd(200, 'q');
select is(pg_temp.count_claim(), 8::bigint, 'a bucket that does not exist yet is full: one poll and a tenth of a second''s worth');
select is((select count(*) from aivedio.poll_quotas), 4::bigint, 'each level has its bucket now');
select is((select tokens from aivedio.poll_quotas where level = 'platform'), 0::double precision, 'the platform''s is empty');
select is(pg_temp.count_claim(), 0::bigint, 'and nobody gets more');
select is(aivedio.next_poll_in(), interval '50 milliseconds', 'those that wait for a token are due');
select pg_temp.at('0.08 seconds');
select is(pg_temp.count_claim(), 5::bigint, 'it fills with time, at nine tenths of its rate');
select pg_temp.at('10 minutes');
select is(pg_temp.count_claim(), 8::bigint, 'but never beyond its burst');
select pg_temp.forget();

update aivedio.settings set value = '10000' where name = 'poll_rate_platform';
update aivedio.settings set value = '40' where name = 'poll_rate_tenant';
select pg_temp.crowd(10, 't1', 'one');
select pg_temp.crowd(10, 't2', 'two');
select is(pg_temp.count_claim(), 10::bigint, 'a tenant''s bucket holds for each tenant');
select pg_temp.forget();

update aivedio.settings set value = '10000' where name = 'poll_rate_tenant';
select aivedio.override_provider('replicate', '{"quota": {"provider": 90, "model": 50}}', 'test', 'small quotas');
select pg_temp.crowd(10, 'm1', 'three', 'one');
select is(pg_temp.count_claim(), 6::bigint, 'a model''s bucket holds');
select pg_temp.crowd(10, 'm2', 'three', 'two');
select is(pg_temp.count_claim(), 4::bigint, 'a provider''s bucket holds over all its models');
select is((select count(*) from aivedio.poll_quotas where tokens < 0), 0::bigint, 'no bucket is ever overdrawn');

-- Two minutes of schedule in a second: never more than the quota, and nobody starves.
select pg_temp.forget();
select aivedio.override_provider('replicate', '{"quota": {"provider": 5, "model": 5}}', 'test', 'a bottleneck');
delete from aivedio.poll_quotas;
select pg_temp.at('1 hour');
select pg_temp.crowd(40, 'busy', 'busy tenant', 'w');
select pg_temp.crowd(3, 'quiet', 'quiet tenant', 'w');
create temporary table polled (second integer, name text);
do $simulation$
declare
  v_claimed uuid[];
begin
  for v_tenth in 1 .. 1200 loop
    perform pg_temp.at(interval '1 hour' + v_tenth * interval '0.1 second');
    v_claimed := array(select request.attempt_id from aivedio.claim_polls('worker', 100) as request);
    insert into polled
    select v_tenth / 10, substring(attempt.provider_task_id from 'p-(.*)$') from aivedio.task_attempts as attempt where attempt.id = any (v_claimed);
    update aivedio.task_attempts as attempt
    set next_poll_at = aivedio._clock() + interval '3 seconds', poll_lease_until = null
    where attempt.id = any (v_claimed);
  end loop;
end;
$simulation$;
select cmp_ok((select count(*) from polled), '<=', 5 * 120::bigint, 'P14: two minutes of polls stay within the quota');
select cmp_ok((select count(*) from polled), '>=', 4 * 118::bigint, 'P14: and use it');
select cmp_ok((select max(polls) from (select count(*) as polls from polled group by second) as each), '<=', 5::bigint, 'P14: no second sees more than its share');
select is((select count(distinct name) from polled), 43::bigint, 'P14: everybody was polled');
select cmp_ok(
  (select min(polls) from (select count(*) as polls from polled where name like 'busy%' group by name) as each), '>=', 5::bigint, 'P14: nobody of the busy tenant starves'
);
select cmp_ok(
  (select min(polls) from (select count(*) as polls from polled where name like 'quiet%' group by name) as each), '>=', 10::bigint, 'P14: nor does the quiet one''s'
);
select pg_temp.forget();

-- A new rate of the profile reaches the buckets.
select aivedio.override_provider('replicate', '{"quota": {"provider": 500, "model": 500}}', 'test', 'more');
select pg_temp.crowd(50, 'more', 'four', 'x');
select is(pg_temp.count_claim(), 50::bigint, 'with a larger quota there is more');
select is((select full_rate from aivedio.poll_quotas where level = 'model' and key = 'replicate/x'), 500::double precision, 'in the buckets of models too');
select pg_temp.forget();

-- Circuits.
select pg_temp.at('2 hours');
select pg_temp.crowd(5, 'circuit', 'five', 'y');
select aivedio._open_circuit('replicate', 'default', 'test');
select is(pg_temp.count_claim(), 0::bigint, 'an open circuit lets nothing through');
select pg_temp.at('2 hours 37 seconds');
select is(pg_temp.count_claim(), 1::bigint, 'when it is time, one probe');
select results_eq($$ select state, probe_until from aivedio.provider_circuits $$, $$ values ('half_open', aivedio._clock() + interval '60 seconds') $$, 'it is half open');
select is(pg_temp.count_claim(), 0::bigint, 'and no more, while the probe is out');
select pg_temp.at('2 hours 100 seconds');
select is(pg_temp.count_claim(), 1::bigint, 'a probe that never came back is followed by another');
select aivedio._note_success('replicate', 'default');
select is(pg_temp.count_claim(), 4::bigint, 'a closed circuit lets all through');

-- Another credential has a circuit of its own.
select pg_temp.forget();
select aivedio._open_circuit('replicate', 'default', 'test');
select pg_temp.due('other');
update aivedio.task_attempts set credential = 'second' where id = fixture.id('other');
select is(pg_temp.claim(), 'other', 'an open circuit stops only its own credential');

-- What is held back keeps nothing else waiting, however much of it is due.
select pg_temp.forget();
select aivedio.define_provider('second', (select profile from aivedio.providers where name = 'replicate'));
select pg_temp.crowd(60, 'held', 'six', 'z');
select pg_temp.due('free', '-10 seconds', 'six', p_provider => 'second');
select pg_temp.at('2 hours 110 seconds');
select is(pg_temp.claim(50), 'free', 'an open circuit does not keep another provider''s jobs waiting');
select aivedio._note_success('replicate', 'default');
select pg_temp.forget();
insert into aivedio.poll_quotas (level, key, tokens, rate, burst, full_rate, refilled_at, blocked_until)
values ('provider', 'replicate', 0, 10, 10, 10, aivedio._clock(), aivedio._clock() + interval '5 minutes');
update aivedio.task_attempts set next_poll_at = aivedio._clock() - interval '1 minute' where provider_task_id like 'p-held-%';
update aivedio.task_attempts set next_poll_at = aivedio._clock() where id = fixture.id('free');
select is(pg_temp.claim(50), 'free', 'nor does a provider that refused us');
select pg_temp.forget();
insert into aivedio.poll_quotas (level, key, tokens, rate, burst, full_rate, refilled_at)
values ('model', 'replicate/z', 0, 1, 1, 1, aivedio._clock());
update aivedio.task_attempts set next_poll_at = aivedio._clock() - interval '1 minute' where provider_task_id like 'p-held-%';
update aivedio.task_attempts set next_poll_at = aivedio._clock(), provider = 'replicate', model = 'another' where id = fixture.id('free');
select is(pg_temp.claim(50), 'free', 'nor a model whose bucket is empty');
select is((select count(*) from aivedio.task_attempts where poll_lease_until is not null), 1::bigint, 'and of those none was asked');
select pg_temp.forget();

-- Who goes first is found behind however many others, and a lane that may send a few hides no other lane.
delete from aivedio.provider_circuits;
select aivedio.override_provider('replicate', '{"quota": {"provider": 1, "model": 1}}', 'test', 'one at a time');
select pg_temp.crowd(60, 'deep', 'seven', 'one');
update aivedio.task_attempts set next_poll_at = aivedio._clock() - interval '30 seconds' where provider_task_id like 'p-deep-%';
select pg_temp.due('eager', '11 seconds', 'seven', p_model => 'one');
update aivedio.task_attempts set poll_first = true where id = fixture.id('eager');
select pg_temp.due('elsewhere', '0 seconds', 'seven', p_provider => 'second', p_model => 'two');
delete from aivedio.poll_quotas where level in ('provider', 'model');
select is(pg_temp.claim(), 'eager elsewhere', 'of sixty that have waited longer one job goes first, and another provider is asked all the same');
update aivedio.task_attempts set next_poll_at = aivedio._clock() - interval '9 seconds', poll_lease_until = null where id = fixture.id('eager');
delete from aivedio.poll_quotas;
select matches(pg_temp.claim(), '^deep-\d+$', 'but its wait counts threefold, not more');
select pg_temp.forget();

-- Whether the next poll goes first is settled with the last one.
select fixture.task('settled', 'running', p_project => 'a watched one');
select fixture.attempt('settled', 'settled', 'running', p_provider_task_id => 'p-settled');
create function pg_temp.goes_first(p_body jsonb)
returns boolean
language plpgsql
as $goes_first$
begin
  update aivedio.task_attempts as attempt
  set next_poll_at = aivedio._clock(), poll_lease_until = aivedio._clock() + interval '1 minute', lease_token = attempt.lease_token + 1
  where attempt.id = fixture.id('settled');
  perform aivedio.settle_poll(attempt.id, attempt.lease_token, jsonb_build_object('kind', 'response', 'http_status', 200, 'body', '{"id": "p"}'::jsonb || p_body))
  from aivedio.task_attempts as attempt where attempt.id = fixture.id('settled');
  return (select attempt.poll_first from aivedio.task_attempts as attempt where attempt.id = fixture.id('settled'));
end;
$goes_first$;
select is(pg_temp.goes_first('{"status": "processing", "logs": "79%|"}'), false, 'an ordinary job');
select aivedio.watch_projects(array[fixture.id('a watched one')]);
select is(pg_temp.goes_first('{"status": "processing", "logs": "79%|"}'), true, 'one that somebody watches');
select pg_temp.forget();

-- Roles.
set local role aivedio_poll;
select lives_ok($$ select aivedio.claim_polls('worker', 1) $$, 'the poll edge may claim');
select lives_ok($$ select aivedio.next_poll_in() $$, 'and ask when');

select finish();
rollback;
