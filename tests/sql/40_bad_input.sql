-- Stage 40: bad input to the calls that change tasks is refused with a code of ours, or has a meaning; nothing is half applied.
begin;
\ir support/fixtures.sql
select no_plan();

-- What this transaction has written of a task and around it: equal before and after means that nothing was applied.
create function pg_temp.state()
returns text
language sql
as $state$
  select md5(concat_ws(
    '|',
    (select string_agg(task::text, ';' order by task.id) from aivedio.generation_tasks as task),
    (select string_agg(attempt::text, ';' order by attempt.id) from aivedio.task_attempts as attempt),
    (select string_agg(event::text, ';' order by event.event_id) from aivedio.task_events as event),
    (select string_agg(message::text, ';' order by message.id) from aivedio.outbox_events as message),
    (select string_agg(seen::text, ';' order by seen.id) from aivedio.observations as seen),
    (select string_agg(operation::text, ';' order by operation.id) from aivedio.media_operations as operation),
    (select string_agg(entry::text, ';' order by entry.id) from aivedio.credit_ledger as entry),
    (select string_agg(known::text, ';' order by known.id) from aivedio.reconciliation_cases as known),
    (select string_agg(alarm::text, ';' order by alarm.id) from aivedio.alarms as alarm),
    (select string_agg(action::text, ';' order by action.id) from aivedio.operator_actions as action)
  ));
$state$;

-- The code that a call is refused with, and whether it left everything as it was.
create function pg_temp.refused(p_call text)
returns text
language plpgsql
as $refused$
declare
  v_before constant text := pg_temp.state();
begin
  begin
    execute 'select ' || p_call;
  exception
    when others then
      return sqlstate || case when pg_temp.state() = v_before then '' else ', half applied' end;
  end;
  return 'accepted';
end;
$refused$;

select fixture.job('new', 'created'), fixture.job('run', 'running'), fixture.job('wish', 'cancel_requested'), fixture.job('made', 'provider_succeeded');
select count(*) from aivedio.claim_submits('worker', 10, 'https://us.example');
update aivedio.task_attempts set next_poll_at = aivedio._clock() where id = fixture.id('attempt of run');
update aivedio.task_attempts set cancel_state = 'due', cancel_due_at = aivedio._clock() where id = fixture.id('attempt of wish');
select count(*) from aivedio.claim_polls('worker');
select count(*) from aivedio.claim_cancels('worker');
select aivedio.open_media(jsonb_build_object('aggregate_id', fixture.id('made'), 'attempt_id', fixture.id('attempt of made')));
select count(*) from aivedio.claim_media('studio');

-- Outcomes of requests: wrong types.
select is(
  pg_temp.refused(format('aivedio.%s(fixture.id(%L), 1, %L)', call.name, call.attempt, outcome.value)), 'VC201', call.name || ' of ' || coalesce(outcome.value, 'nothing')
)
from (values ('settle_submit', 'attempt of new'), ('settle_poll', 'attempt of run'), ('settle_cancel', 'attempt of wish')) as call (name, attempt)
cross join unnest(array[
  null, 'null', '[]', '"response"', '17', '{"kind": 5}', '{"kind": "response", "http_status": "200"}',
  '{"kind": "response", "http_status": 99999999999}', '{"kind": "response", "http_status": 200.5}', '{"kind": "response", "http_status": -1}',
  '{"kind": "response", "http_status": {}}', '{"kind": "response", "http_status": 429, "retry_after_s": "soon"}',
  '{"kind": "response", "http_status": 429, "retry_after_s": [1]}', '{"kind": "response", "http_status": 429, "retry_after_s": 1e300}'
]) as outcome (value);

-- Without a token nobody holds a lease.
select is(
  pg_temp.refused(format('1 / ((aivedio.%s(fixture.id(%L), null, %L)).verdict = %L)::integer', call.name, call.attempt, call.outcome, 'stale_attempt')),
  'accepted', call.name || ' without a token is a stale worker''s'
)
from (values
  ('settle_submit', 'attempt of new', '{"kind": "response", "http_status": 201, "body": {"id": "x"}}'),
  ('settle_poll', 'attempt of run', '{"kind": "response", "http_status": 200, "body": {"id": "provider-run", "status": "failed"}}'),
  ('settle_cancel', 'attempt of wish', '{"kind": "response", "http_status": 200, "body": {}}')
) as call (name, attempt, outcome);
select is(
  (select (aivedio.report_media(operation.id, null, '{"progress": 50}')).verdict from aivedio.media_operations as operation), 'stale_lease', 'nor the media plane'
);

-- Bodies may hold anything: they have a meaning, and it is never success.
select is(
  (select (aivedio.settle_submit(fixture.id('attempt of new'), attempt.submit_token, '{"kind": "response", "http_status": 201, "body": {"id": {"a": [1]}}}')).verdict
   from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of new')),
  'applied', 'an answer whose id is no id'
);
select is((select attempt.submit_state from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of new')), 'unknown', 'is no acceptance');

-- Reports of the media plane.
select is(
  pg_temp.refused(format('aivedio.report_media((select operation.id from aivedio.media_operations as operation), 1, %L)', report.value)), 'VC702',
  'a media report of ' || coalesce(left(report.value, 40), 'nothing')
)
from unnest(array[
  null, 'null', '[]', '"done"', '["done"]', '["failed"]', '{}', '{"progress": "5"}', '{"progress": null}', '{"done": null}', '{"done": 5}', '{"done": true}',
  '{"done": {}, "failed": "x"}', '{"failed": null}', '{"failed": {"a": 1}}', '{"failed": ""}', '{"failed": "x", "retry": "no"}', '{"failed": "x", "retry": 0}'
]) as report (value);
select is(pg_temp.refused($$ aivedio.report_media(fixture.id('nothing'), 1, '{"done": {}}') $$), 'VC703', 'an operation that does not exist');
select is(
  (select (aivedio.report_media(operation.id, operation.lease_token, '{"progress": 1e300}')).progress from aivedio.media_operations as operation), 100::smallint,
  'progress beyond everything is all'
);

-- Messages.
select is(pg_temp.refused(format('aivedio.%s(%L)', call.name, message.value)), 'VC701', call.name || ' of ' || coalesce(message.value, 'nothing'))
from (values ('book_credit'), ('open_media')) as call (name)
cross join unnest(array[
  null, 'null', '[]', '"x"', '{}', '{"attempt_id": "x", "aggregate_id": "y"}', '{"attempt_id": 5, "aggregate_id": {}}',
  '{"attempt_id": "00000000-0000-0000-0000-000000000000", "aggregate_id": "00000000-0000-0000-0000-000000000000", "event_id": "x"}',
  '{"attempt_id": "00000000-0000-0000-0000-000000000000", "aggregate_id": "00000000-0000-0000-0000-000000000000", "event_id": 1e30}',
  '{"attempt_id": "00000000-0000-0000-0000-000000000000", "aggregate_id": "00000000-0000-0000-0000-000000000000", "event_id": -1}'
]) as message (value);
select is(
  aivedio.book_credit(jsonb_build_object('attempt_id', fixture.id('attempt of run'), 'status', 'dancing')), 'ignored', 'a status that is none books nothing'
);

-- Observations that no profile makes.
select is(
  pg_temp.refused(format(
    'aivedio.apply_observation(jsonb_populate_record(null::aivedio.provider_observation, %L::jsonb || jsonb_build_object(%L, fixture.id(%L))))',
    observation.value, 'attempt_id', 'attempt of run'
  )),
  observation.code, 'an observation with ' || left(observation.value, 60)
)
from (values
  ('{}', 'VC403'), ('{"source": "dream"}', 'VC403'), ('{"source": "webhook", "normalized_status": "dancing"}', 'VC405'),
  ('{"source": "webhook", "normalized_status": "running", "progress": 32767}', 'VC405'), ('{"source": "webhook", "normalized_status": "running", "progress": -1}', 'VC405'),
  ('{"source": "webhook", "normalized_status": "failed", "error_code": "See https://provider.example"}', 'VC405'),
  ('{"source": "webhook", "normalized_status": "failed", "error_code": "' || repeat('x', 100000) || '"}', 'VC405'),
  ('{"source": "webhook", "normalized_status": "running", "provider_task_id": "' || repeat('x', 100000) || '"}', 'VC405'),
  ('{"source": "webhook", "normalized_status": "running", "stage": "' || repeat('x', 100000) || '"}', 'VC405'),
  ('{"source": "webhook", "normalized_status": "running", "provider_occurred_at": "infinity"}', 'VC405'),
  ('{"source": "webhook", "normalized_status": "running", "received_at": "-infinity"}', 'VC405')
) as observation (value, code);
select is(
  (aivedio.apply_observation(jsonb_populate_record(null::aivedio.provider_observation, jsonb_build_object('source', 'poll', 'attempt_id', fixture.id('attempt of run'))))).verdict,
  'unknown_word', 'an observation that says nothing at all is an unknown word, and alarmed'
);

-- Clocks of 1970 and 2100 decide nothing, and spoil no statistics.
create function pg_temp.at(p_job text, p_status text, p_when text, p_sequence bigint default null)
returns text
language plpgsql
as $at$
declare
  v_observation aivedio.provider_observation := fixture.observation(fixture.id('attempt of ' || p_job), p_status, p_sequence => p_sequence);
begin
  v_observation.provider_occurred_at := p_when;
  return (aivedio.apply_observation(v_observation)).verdict;
end;
$at$;
select fixture.job('clock', 'submitted');
select is(pg_temp.at('clock', 'queued', '2100-01-01'), 'applied', 'a clock of 2100');
select is(pg_temp.at('clock', 'running', '1970-01-01'), 'applied', 'then one of 1970: order is not the clock''s');
select is(pg_temp.at('clock', 'succeeded', '1969-12-31'), 'applied', 'nor is the end');
select is((select count(seen.lag) from aivedio.observations as seen where seen.task_id = fixture.id('clock')), 0::bigint, 'such lags are not kept');
select is(pg_temp.at('wish', 'running', '2026-06-24 03:09:57+00'), 'duplicate', 'a clock that is right');

-- Sequences at their end.
select fixture.job('counted', 'submitted');
select is(pg_temp.at('counted', 'queued', null, 9223372036854775807), 'applied', 'the largest number there is');
select is(pg_temp.at('counted', 'running', null, 9223372036854775807), 'stale_sequence', 'nothing comes after it');
select is(pg_temp.at('counted', 'running', null, -9223372036854775808), 'stale_sequence', 'nor before');
select is(pg_temp.at('counted', 'running', null), 'applied', 'but for what has no number');

-- Commands.
create function pg_temp.create_with(p_arguments text)
returns text
language sql
as $create_with$
  select pg_temp.refused(format('aivedio.create_task(%s)', p_arguments));
$create_with$;
select is(pg_temp.create_with(call.arguments), call.code, call.why)
from (values
  ($$ null, fixture.id('project'), fixture.id('user'), 'replicate', 'm', '{}' $$, 'VC416', 'a task of no tenant'),
  ($$ fixture.id('tenant'), null, fixture.id('user'), 'replicate', 'm', '{}' $$, 'VC416', 'of no project'),
  ($$ fixture.id('tenant'), fixture.id('project'), null, 'replicate', 'm', '{}' $$, 'VC416', 'of no user'),
  ($$ fixture.id('tenant'), fixture.id('project'), fixture.id('user'), null, 'm', '{}' $$, 'VC416', 'for no provider'),
  ($$ fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'replicate', ' ', '{}' $$, 'VC416', 'for no model'),
  ($$ fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'replicate', repeat('m', 100000), '{}' $$, 'VC416', 'for a model without end'),
  ($$ fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'replicate', 'm', null $$, 'VC412', 'with no input'),
  ($$ fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'replicate', 'm', '"text"' $$, 'VC412', 'with an input that is a text'),
  ($$ fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'replicate', 'm', '{}', '' $$, 'VC415', 'with an empty key'),
  ($$ fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'replicate', 'm', '{}', repeat('k', 100000) $$, 'VC415', 'with a key that no index holds'),
  ($$ fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'replicate', 'm', '{}', 'k', repeat('t', 5000) $$, 'VC415', 'with a trace id that no event holds')
) as call (arguments, code, why);
select is(
  pg_temp.refused(format('aivedio.start_attempt(fixture.id(%L), fixture.id(%L), fixture.id(%L), %s)', 'tenant', 'project', 'failed', call.arguments)), call.code, call.why
)
from (select fixture.job('failed', 'failed')) as made
cross join (values
  ($$ null, 'why' $$, 'VC002', 'nobody tries again'), ($$ ' ', 'why' $$, 'VC002', 'nor does a blank'), ($$ 'ops', null $$, 'VC413', 'without a reason'),
  ($$ 'ops', 'why', '' $$, 'VC415', 'with an empty key'), ($$ 'ops', 'why', repeat('k', 100000) $$, 'VC415', 'with a key that no index holds')
) as call (arguments, code, why);
select is(
  (aivedio.start_attempt(fixture.id('tenant'), fixture.id('project'), fixture.id('failed'), repeat('w', 100000), repeat('y', 1000000))).verdict, 'applied', 'huge names and reasons'
);
select ok(
  (select length(action.actor) <= 300 and length(action.reason) <= 4000 from aivedio.operator_actions as action where action.action = 'start_attempt'), 'are cut in the audit'
);
select is(pg_temp.refused('aivedio.request_cancel(null, null, null, null)'), 'VC404', 'a cancellation of nothing');
select is(pg_temp.refused(format('aivedio.resolve_case(%L, null, %L, %L)', known.id, 'ops', 'why')), 'VC904', 'a case resolved as nothing')
from aivedio.reconciliation_cases as known;
select is(pg_temp.refused(format('aivedio.resolve_case(%L, %L, null, %L)', known.id, 'failed', 'why')), 'VC002', 'a case resolved by nobody')
from aivedio.reconciliation_cases as known;
select is(pg_temp.refused($$ aivedio.resolve_case(null, 'kept', 'ops', 'why') $$), 'VC903', 'no case');
select is(
  pg_temp.refused(format('aivedio.record_submission(fixture.id(%L), fixture.id(%L), fixture.id(%L), %L, null, %L)', 'tenant', 'project', 'new', 'job-9', 'why')),
  'VC002', 'a submission recorded by nobody'
);

select finish();
rollback;
