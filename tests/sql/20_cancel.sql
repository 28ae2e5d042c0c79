-- Stage 20: a wish to cancel reaches the provider once it can, and the job's end is still the provider's word.
begin;
\ir support/fixtures.sql
select plan(36);

create function pg_temp.at(p_after interval)
returns void
language sql
as $at$
  select set_config('aivedio.now', (timestamptz '2026-06-24 03:10:00+00' + p_after)::text, true);
$at$;

-- A running job whose cancellation is asked for.
create function pg_temp.unwanted(p_name text, p_status text default 'running')
returns void
language plpgsql
as $unwanted$
begin
  perform fixture.job(p_name, p_status);
  perform aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id(p_name), fixture.id('user'));
end;
$unwanted$;

create function pg_temp.claim()
returns setof aivedio.provider_request
language sql
as $claim$
  select * from aivedio.claim_cancels('worker', 10);
$claim$;

create function pg_temp.state(p_name text)
returns text
language sql
as $state$
  select concat_ws(' ', attempt.cancel_state, attempt.cancel_tries) from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of ' || p_name);
$state$;

create function pg_temp.settle(p_name text, p_outcome jsonb, p_token bigint default null)
returns text
language sql
as $settle$
  select answer.verdict || ' ' || answer.status
  from aivedio.settle_cancel(
    fixture.id('attempt of ' || p_name),
    coalesce(p_token, (select attempt.cancel_token from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of ' || p_name))), p_outcome
  ) as answer;
$settle$;

create function pg_temp.response(p_status integer)
returns jsonb
language sql
as $response$
  select jsonb_build_object('kind', 'response', 'http_status', p_status, 'body', '{}'::jsonb);
$response$;

select is_empty($$ select * from pg_temp.claim() $$, 'nothing to cancel');

-- Told, and confirmed.
select pg_temp.unwanted('a');
select results_eq(
  $$ select method, url, lease_token from pg_temp.claim() $$,
  $$ values ('POST', 'https://api.replicate.com/v1/predictions/provider-a/cancel', 1::bigint) $$,
  'the provider is to be told'
);
select is(pg_temp.state('a'), 'sent 1', 'it is on its way');
select is((select cancel_leased_by from aivedio.task_attempts where id = fixture.id('attempt of a')), 'worker', 'who holds it is known');
select is_empty($$ select * from pg_temp.claim() $$, 'and handed out once');
select is((select count(*) from aivedio.task_events), 1::bigint, 'a claim makes no event');
select is(pg_temp.settle('a', pg_temp.response(200)), 'applied cancel_requested', 'a confirmation is not yet the end');
select is(pg_temp.state('a'), 'accepted 1', 'the wish was accepted');
select is(
  (select next_poll_at - aivedio._clock() between interval '1.6 s' and interval '2.4 s' from aivedio.task_attempts where id = fixture.id('attempt of a')), true,
  'the next poll is soon and will tell'
);
select is(pg_temp.settle('a', pg_temp.response(200)), 'duplicate cancel_requested', 'the same answer again changes nothing');
select is(pg_temp.settle('a', pg_temp.response(200), 7), 'stale_attempt cancel_requested', 'nor does an old token');
select is((select verdict from aivedio.settle_cancel(fixture.id('nobody'), 1, '{}')), 'orphan', 'an unknown attempt is no exception');

-- S10: the race with success has one outcome.
select aivedio.accept_callbacks(array[fixture.delivery('m1', 'a', 'succeeded')]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select is((select status from aivedio.generation_tasks where id = fixture.id('a')), 'provider_succeeded', 'S10: by default a result that came all the same is kept');

-- The job's id must be known first.
select fixture.job('b', 'submitting');
select aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id('b'), fixture.id('user'));
select is_empty($$ select * from pg_temp.claim() $$, 'without the provider''s id it waits');
select aivedio.settle_submit(fixture.id('attempt of b'), 0, '{"kind": "response", "http_status": 201, "body": {"id": "provider-b"}}');
select is((select status from aivedio.generation_tasks where id = fixture.id('b')), 'cancel_requested', 'the answer to the submission does not undo the wish');
select is((select url from pg_temp.claim()), 'https://api.replicate.com/v1/predictions/provider-b/cancel', 'then it goes out');

-- A lease that ran out, a fault, a rate: again, later each time, and not for ever.
select pg_temp.at('61 seconds');
select is((select lease_token from pg_temp.claim()), 2::bigint, 'a lease that ran out is handed out again');
select is(pg_temp.settle('b', pg_temp.response(200), 1), 'stale_attempt cancel_requested', 'the first worker is too late');
select is(pg_temp.settle('b', pg_temp.response(503)), 'applied cancel_requested', 'a server error');
select is(pg_temp.state('b'), 'due 2', 'is tried again');
select is_empty($$ select * from pg_temp.claim() $$, 'later');
select pg_temp.at('70 seconds');
select is((select count(*) from pg_temp.claim()), 1::bigint, 'now');
select pg_temp.settle('b', '{"kind": "response", "http_status": 429, "retry_after_s": 200, "body": null}');
select is(
  (select cancel_due_at - aivedio._clock() from aivedio.task_attempts where id = fixture.id('attempt of b')), interval '200 seconds', 'as late as the provider asks for'
);
do $tries$
begin
  for v_try in 4 .. 8 loop
    perform pg_temp.at(v_try * interval '10 minutes');
    perform pg_temp.claim();
    perform pg_temp.settle('b', '{"kind": "timeout"}');
  end loop;
end;
$tries$;
select is(pg_temp.state('b'), 'given_up 8', 'eight times at most');
select results_eq($$ select subject from aivedio.alarms where kind = 'cancel_given_up' $$, $$ values ('replicate') $$, 'then it is alarmed');
select is((select status from aivedio.generation_tasks where id = fixture.id('b')), 'cancel_requested', 'and the task waits for the job''s own end');

-- Too late, says the provider.
select pg_temp.at('0');
select pg_temp.unwanted('c');
select pg_temp.claim();
select is(pg_temp.settle('c', pg_temp.response(409)), 'applied cancel_requested', 'a refusal');
select is(pg_temp.state('c'), 'given_up 1', 'is not argued with');
select is((select next_poll_at is not null from aivedio.task_attempts where id = fixture.id('attempt of c')), true, 'the poll will tell how the job ended');
select is((select count from aivedio.alarms where kind = 'cancel_given_up'), 1::bigint, 'that is no alarm');

-- A provider that cannot cancel.
select aivedio.override_provider('replicate', '{"cancel": null}', 'test', 'no cancel');
select pg_temp.unwanted('d');
select is_empty($$ select * from pg_temp.claim() $$, 'nothing is sent where nothing can be');
select is(pg_temp.state('d'), 'unsupported 0', 'and that is on record');
select is((select status from aivedio.generation_tasks where id = fixture.id('d')), 'cancel_requested', 'the task waits for the job''s own end');
select aivedio.override_provider('replicate', '{}', 'test', 'back');

-- Over before it was told.
select pg_temp.unwanted('e');
select aivedio.accept_callbacks(array[fixture.delivery('m2', 'e', 'canceled')]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select is((select status from aivedio.generation_tasks where id = fixture.id('e')), 'canceled', 'a job that ended by itself');
select is_empty($$ select * from pg_temp.claim() $$, 'need not be told');

set local role aivedio_submit;
select lives_ok($$ select aivedio.claim_cancels('worker', 1) $$, 'the submit edge may claim');

select finish();
rollback;
