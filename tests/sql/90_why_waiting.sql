-- Stage 90: why_waiting says in one row, and in words that do not change, what stands between a task and its next step.
begin;
\ir support/fixtures.sql
select plan(35);

create function pg_temp.why(p_task text)
returns text
language sql
as $why$
  select (
    select string_agg(reason, ' ' order by place)
    from jsonb_array_elements_text(aivedio.why_waiting(fixture.id(p_task)) -> 'reasons') with ordinality as word (reason, place)
  );
$why$;

create function pg_temp.change(p_task text, p_set text)
returns void
language plpgsql
as $change$
begin
  execute format('update aivedio.task_attempts set %s where id = fixture.id(%L)', p_set, 'attempt of ' || p_task);
end;
$change$;

select is(aivedio.why_waiting(fixture.id('nobody')), null, 'an unknown task has no answer');

-- Before the provider has it.
select fixture.job('new', 'created');
select is(pg_temp.why('new'), 'submission_due', 'a new task is to be submitted');
select pg_temp.change('new', $$ submit_state = 'application' $$);
select is(pg_temp.why('new'), 'application_submits', 'by its application, if that said so');
select pg_temp.change('new', $$ submit_state = 'due', submit_due_at = aivedio._clock() + interval '1 minute' $$);
select is(pg_temp.why('new'), 'submission_delayed', 'later, if it was turned away');
select aivedio._open_circuit('replicate', 'default', 'credential_refused');
select is(pg_temp.why('new'), 'circuit_open', 'not while its credential is refused');
select is(aivedio.why_waiting(fixture.id('new')) #>> '{circuit,reason}', 'credential_refused', 'which is told with its reason');
update aivedio.provider_circuits set retry_at = aivedio._clock();
select pg_temp.change('new', 'submit_due_at = null');
select is(pg_temp.why('new'), 'submission_due', 'a circuit that may be probed holds nobody up');
select aivedio._close_circuit('replicate', 'default');
select aivedio.claim_submits('worker-7', 1, 'https://us.example');
select is(pg_temp.why('new'), 'submission_in_flight', 'then a worker waits for the answer');
select is(aivedio.why_waiting(fixture.id('new')) #>> '{attempt,submit_leased_by}', 'worker-7', 'it is known which one');
select aivedio.settle_submit(fixture.id('attempt of new'), 1, '{"kind": "timeout", "error": "ReadTimeout"}');
select is(pg_temp.why('new'), 'submission_unknown case_open', 'and what nobody knows is a case');
select is(aivedio.why_waiting(fixture.id('new')) #>> '{cases,0,kind}', 'submit_unknown', 'which is named');

-- At the provider.
select fixture.job('run', 'running');
select is(pg_temp.why('run'), 'callback_only', 'who is not polled waits for a callback');
select pg_temp.change('run', $$ next_poll_at = aivedio._clock() + interval '5 seconds' $$);
select is(pg_temp.why('run'), 'poll_scheduled', 'the next poll is to come');
select is((aivedio.why_waiting(fixture.id('run')) #>> '{attempt,next_poll_at}')::timestamptz, aivedio._clock() + interval '5 seconds', 'and when');
select pg_temp.change('run', 'next_poll_at = aivedio._clock()');
select is(pg_temp.why('run'), 'poll_due', 'or due');
select pg_temp.change('run', 'provider_task_id = null');
select is(pg_temp.why('run'), 'callback_only', 'but not without the provider''s id');
select pg_temp.change('run', $$ provider_task_id = 'job' $$);
select aivedio._open_circuit('replicate', 'default', 'malformed');
select is(pg_temp.why('run'), 'circuit_open', 'not through an open circuit');
select aivedio._close_circuit('replicate', 'default');
delete from aivedio.poll_quotas;
insert into aivedio.poll_quotas (level, key, tokens, rate, burst, full_rate, refilled_at, blocked_until)
values ('provider', 'replicate', 5, 1, 10, 2, aivedio._clock(), aivedio._clock() + interval '1 minute'),
       ('model', 'replicate/lumen/video-1', 5, 1, 10, 1, aivedio._clock(), null),
       ('provider', 'other', 0, 1, 10, 2, aivedio._clock(), aivedio._clock() + interval '1 minute');
select is(pg_temp.why('run'), 'quota_empty', 'nor after a refusal');
select results_eq(
  $$ select quota ->> 'level', quota ->> 'key', (quota ->> 'tokens')::integer, quota ->> 'blocked_until' is not null
     from jsonb_array_elements(aivedio.why_waiting(fixture.id('run')) -> 'quotas') as quota $$,
  $$ values ('model', 'replicate/lumen/video-1', 5, false), ('provider', 'replicate', 5, true) $$,
  'its buckets are shown, and no other''s'
);
update aivedio.poll_quotas set blocked_until = null, tokens = 0 where level = 'model';
update aivedio.poll_quotas set blocked_until = null where level = 'provider';
select is(pg_temp.why('run'), 'quota_empty', 'nor from an empty bucket');
delete from aivedio.poll_quotas;
select count(*) from aivedio.claim_polls('worker-8');
select is(pg_temp.why('run'), 'poll_in_flight', 'then a worker asks');
select is(aivedio.why_waiting(fixture.id('run')) #>> '{attempt,poll_leased_by}', 'worker-8', 'it is known which one');
select pg_temp.change('run', $$ deadline_at = aivedio._clock() - interval '1 second' $$);
select is(pg_temp.why('run'), 'poll_in_flight overdue', 'a deadline that has passed is said');
select aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id('run'), fixture.id('user'));
select is(pg_temp.why('run'), 'poll_in_flight cancel_in_flight overdue', 'a cancellation, too');

-- Callbacks and messages on their way.
select is((aivedio.why_waiting(fixture.id('run')) #>> '{outbox,waiting}')::integer, 1, 'the message of its last change is to be sent');
set local aivedio.now = '2026-06-24 03:10:30+00';
select is((aivedio.why_waiting(fixture.id('run')) #>> '{outbox,oldest_s}')::numeric, 30::numeric, 'since when');
select pg_temp.change('run', $$ provider_task_id = 'provider-run' $$);
select aivedio.accept_callbacks(array[fixture.delivery('w1', 'run')]);
select is(aivedio.why_waiting(fixture.id('run')) ->> 'callbacks_waiting', '1', 'a callback waits to be applied');
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select is(
  (aivedio.why_waiting(fixture.id('run')) #>> '{attempt,last_callback_at}')::timestamptz, aivedio._clock(), 'and then is the last one'
);

-- The media plane.
select fixture.job('made', 'provider_succeeded');
select is(pg_temp.why('made'), 'media_unopened', 'a success that the media consumer has not heard of');
select aivedio.open_media(jsonb_build_object('aggregate_id', fixture.id('made'), 'attempt_id', fixture.id('attempt of made')));
select is(pg_temp.why('made'), 'media_waiting', 'waits for a worker');
select count(*) from aivedio.claim_media('studio-1');
select is(pg_temp.why('made'), 'media_running', 'is being worked on');
select is(
  aivedio.why_waiting(fixture.id('made')) #>> '{operations,0,leased_by}', 'studio-1', 'by somebody'
);

-- Over.
select fixture.job('done', 'ready');
select is(pg_temp.why('done'), 'over', 'what is over waits for nothing');
select aivedio.apply_observation(fixture.observation(fixture.id('attempt of done'), 'failed'));
select is(pg_temp.why('done'), 'over case_open', 'though somebody may have to look at it');

select set_eq(
  $$
    select found.word[1]
    from pg_proc as function
    cross join lateral regexp_matches(function.prosrc, $x$(?:then|else|\|\|)\s+'([a-z_]+)'$x$, 'g') as found (word)
    where function.proname = '_waiting_reasons'
    union select 'media_unopened'
  $$,
  array[
    'over', 'media_running', 'media_waiting', 'media_unopened', 'circuit_open', 'submission_delayed', 'submission_due',
    'application_submits', 'submission_in_flight', 'submission_unknown', 'poll_in_flight', 'callback_only', 'poll_scheduled',
    'quota_empty', 'poll_due', 'cancel_in_flight', 'overdue', 'case_open'
  ],
  'these are all the reasons there are'
);

select finish();
rollback;
