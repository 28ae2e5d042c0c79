-- Stage 10: an unsigned callback makes a poll due and never carries a state.
begin;
\ir support/fixtures.sql
select plan(35);

create function pg_temp.at(p_after interval)
returns void
language sql
as $at$
  select set_config('aivedio.now', (timestamptz '2026-06-24 03:10:00+00' + p_after)::text, true);
$at$;

create function pg_temp.hint(p_token text, p_body text default '{"id": "provider-task", "status": "succeeded", "output": "https://evil.example/x"}')
returns text
language sql
as $hint$
  select aivedio.accept_callbacks(array[row(
    0, 'replicate', '{"webhook-id": "h"}', p_body, '\x00', null, false, sha256(convert_to(p_token, 'UTF8')), null, null
  )::aivedio.received_callback]);
  select format('claimed %s ignored %s', batch.claimed, batch.ignored) from aivedio.process_inbox('{0,1,2,3,4,5,6,7}') as batch;
$hint$;

create function pg_temp.due()
returns interval
language sql
as $due$
  select attempt.next_poll_at - timestamptz '2026-06-24 03:10:00+00' from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt');
$due$;

select fixture.task('task', 'running');
select fixture.attempt(p_status => 'running', p_token => 'secret', p_next_poll_at => aivedio._clock() + interval '1 hour');

-- W8.
select is(pg_temp.hint('secret'), 'claimed 1 ignored 1', 'W8: a hint is taken');
select is(pg_temp.due(), interval '0', 'W8: the poll is due now');
select is((select status from aivedio.generation_tasks where id = fixture.id('task')), 'running', 'W8: what it says is not believed');
select is_empty($$ select 1 from aivedio.attempt_outputs $$, 'W8: nor are its outputs');
select results_eq(
  $$ select process_status, verdict, attempt_id from aivedio.provider_callback_inbox $$, $$ values ('done', 'hint', fixture.id('attempt')) $$, 'W8: its row says hint'
);

-- However many hint, one poll every five seconds.
update aivedio.task_attempts set last_polled_at = aivedio._clock(), next_poll_at = aivedio._clock() + interval '1 hour' where id = fixture.id('attempt');
select pg_temp.at('1 second');
select is(pg_temp.hint('secret'), 'claimed 1 ignored 1', 'the next hint is taken');
select is(pg_temp.due(), interval '5 seconds', 'but its poll keeps a distance to the last one');
select pg_temp.at('2 seconds');
select is(pg_temp.hint('secret'), 'claimed 0 ignored 0', 'a hint whose poll is still to come writes nothing');
select is(pg_temp.due(), interval '5 seconds', 'more hints change nothing');
select is((select count(*) from aivedio.provider_callback_inbox), 1::bigint, 'and make no more rows');
select pg_temp.at('6 seconds');
update aivedio.task_attempts set last_polled_at = aivedio._clock(), next_poll_at = aivedio._clock() + interval '1 hour' where id = fixture.id('attempt');
select pg_temp.at('20 seconds');
select pg_temp.hint('secret');
select is(pg_temp.due(), interval '20 seconds', 'after a rest the poll is due at once again');

-- A poll that is due sooner stays so.
update aivedio.task_attempts set next_poll_at = aivedio._clock() - interval '1 minute', hinted_at = null where id = fixture.id('attempt');
select pg_temp.hint('secret');
select is(pg_temp.due(), interval '-40 seconds', 'a hint never puts a poll off');

-- Nothing to poll.
update aivedio.task_attempts set next_poll_at = null, provider_task_id = null, hinted_at = null where id = fixture.id('attempt');
select is(pg_temp.hint('secret'), 'claimed 1 ignored 1', 'an attempt without the provider''s id cannot be polled');
select is(pg_temp.due(), null, 'and is not scheduled');
update aivedio.task_attempts set provider_task_id = 'p', status = 'succeeded', terminal_at = aivedio._clock() where id = fixture.id('attempt');
select is(pg_temp.hint('secret'), 'claimed 0 ignored 0', 'an attempt that is over need not be polled');
select is(pg_temp.due(), null, 'and is not scheduled either');

-- A body that its provider's signature does not cover: the key is known, but nothing else.
select fixture.task('half', 'running');
select fixture.attempt('half', 'half', 'running', p_token => 'half-token', p_next_poll_at => aivedio._clock() + interval '1 hour');
select results_eq(
  $$ select ordinal, is_new, is_dead from aivedio.accept_callbacks(array[row(
       3, 'replicate', '{"webhook-id": "chosen"}', '{"id": "provider-task", "status": "failed"}', '\x00', 'current', false,
       sha256(convert_to('half-token', 'UTF8')), null, null
     )::aivedio.received_callback]) $$,
  $$ values (3, true, false) $$,
  'a callback whose body is not signed is answered'
);
select results_eq(
  $$ select signed, signature_key_version, provider_event_id, provider_task_id, payload from aivedio.provider_callback_inbox where process_status = 'pending' $$,
  $$ values (false, 'current', null::text, null::text, null::jsonb) $$,
  'of it only the key that its sender has is kept'
);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select is((select status from aivedio.generation_tasks where id = fixture.id('half')), 'running', 'it carries no state');
select is((select next_poll_at from aivedio.task_attempts where id = fixture.id('half')), aivedio._clock(), 'but makes the poll due');
select is(aivedio.knows_callback_token('replicate', sha256('half-token')), true, 'a token that was given out is known');
select is(aivedio.knows_callback_token('replicate', sha256('guess')), false, 'a guessed one is not');
select is(aivedio.knows_callback_token('another', sha256('half-token')), false, 'nor is one of another provider');

-- A provider whose signed callbacks are thin: they only say that there is news.
select aivedio.override_provider('replicate', '{"webhook": {"thin": true}}', 'ann', 'a thin provider');
select fixture.job('thin');
select aivedio.accept_callbacks(array[fixture.delivery('m1', 'thin', 'failed')]);
select results_eq($$ select ignored from aivedio.process_inbox('{0,1,2,3,4,5,6,7}') $$, $$ values (1) $$, 'a thin callback is a hint');
select is((select status from aivedio.generation_tasks where id = fixture.id('thin')), 'submitted', 'it carries no state');
select is((select next_poll_at from aivedio.task_attempts where id = fixture.id('attempt of thin')), aivedio._clock(), 'but makes the poll due');

-- Thin as it is, it is the answer to a submission whose own answer was lost.
select fixture.task('lost', 'submitting');
select fixture.attempt('lost', 'lost', 'submit_unknown', p_token => 'lost-token');
select aivedio._open_case('submit_unknown', attempt.id::text, attempt, null, '{}') from aivedio.task_attempts as attempt where attempt.id = fixture.id('lost');
create function pg_temp.thin(p_event text, p_token text)
returns aivedio.received_callback
language plpgsql
as $thin$
declare
  v_callback aivedio.received_callback := fixture.delivery(p_event, 'lost', 'failed');
begin
  v_callback.token_hash := sha256(convert_to(p_token, 'UTF8'));
  return v_callback;
end;
$thin$;
select aivedio.accept_callbacks(array[pg_temp.thin('m2', 'lost-token')]);
select results_eq($$ select ignored from aivedio.process_inbox('{0,1,2,3,4,5,6,7}') $$, $$ values (1) $$, 'a thin callback may come before the answer to the submission');
select results_eq(
  $$ select provider_task_id collate "default", submit_state, next_poll_at from aivedio.task_attempts where id = fixture.id('lost') $$,
  $$ values ('provider-lost', 'accepted', aivedio._clock()) $$,
  'it tells the provider''s id, and the job is polled under it'
);
select is((select status from aivedio.generation_tasks where id = fixture.id('lost')), 'submitted', 'the task is known to be submitted');
select is((select state from aivedio.reconciliation_cases where subject = fixture.id('lost')::text), 'resolved', 'and the case is closed');
select aivedio.accept_callbacks(array[pg_temp.thin('m3', 'lost-token')]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select is((select version from aivedio.generation_tasks where id = fixture.id('lost')), 2::bigint, 'the next one tells nothing new');
select is((select string_agg(verdict, ' ') from aivedio.provider_callback_inbox where dedup_key in ('m2', 'm3')), 'hint hint', 'both are hints');

-- Refused signatures are counted at the edge and reported once a minute.
create function pg_temp.report(p_failures text)
returns integer
language sql
as $report$
  select aivedio.report_signature_failures(p_failures::aivedio.signature_failure[]);
$report$;
select is(pg_temp.report('{"(replicate,mismatch,2)","(replicate,too_old,1)"}'), 0, 'a few refusals are no alarm');
select is(pg_temp.report('{"(replicate,mismatch,40)","(replicate,too_old,2)","(nobody,mismatch,99)","(replicate,missing,-5)","(replicate,,7)"}'), 1, 'many are one, for providers that exist');
select results_eq(
  $$ select kind, subject, detail from aivedio.alarms where kind = 'signature_failures' $$,
  $$ values ('signature_failures', 'replicate', '{"mismatch": 40, "too_old": 2}'::jsonb) $$,
  'with what was wrong'
);

select finish();
rollback;
