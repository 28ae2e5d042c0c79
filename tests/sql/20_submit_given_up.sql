-- Stage 20: a provider that accepts after all what was given up is heard: its id is kept, a case opened, no task touched.
begin;
\ir support/fixtures.sql
select plan(22);

create function pg_temp.accepted(p_id text)
returns jsonb
language sql
as $accepted$
  select jsonb_build_object('kind', 'response', 'http_status', 201, 'body', jsonb_build_object('id', p_id, 'status', 'starting'));
$accepted$;

create function pg_temp.settle(p_name text, p_outcome jsonb)
returns text
language sql
as $settle$
  select concat_ws(' ', answer.verdict, answer.status, case when answer.event_id is not null then 'event' end)
  from aivedio.task_attempts as attempt
  cross join lateral aivedio.settle_submit(attempt.id, attempt.submit_token, p_outcome) as answer
  where attempt.id = fixture.id('attempt of ' || p_name);
$settle$;

create function pg_temp.attempt_of(p_name text)
returns text
language sql
as $attempt_of$
  select concat_ws(' ', attempt.status, attempt.submit_state, attempt.provider_task_id)
  from aivedio.task_attempts as attempt
  where attempt.id = fixture.id('attempt of ' || p_name);
$attempt_of$;

create function pg_temp.open_cases(p_name text)
returns text
language sql
as $open_cases$
  select string_agg(known.kind || ' ' || jsonb_array_length(known.evidence), ', ' order by known.kind)
  from aivedio.reconciliation_cases as known
  where known.attempt_id = fixture.id('attempt of ' || p_name) and known.state = 'open';
$open_cases$;

create function pg_temp.record(p_name text, p_id text)
returns text
language sql
as $record$
  select (aivedio.record_submission(
    fixture.id('tenant'), fixture.id('project'), fixture.id(p_name), p_id, 'ops@example.com', 'found in the dashboard'
  )).verdict;
$record$;

-- Sent, not answered, given up by an operator.
create function pg_temp.given_up(p_name text)
returns text
language plpgsql
as $given_up$
begin
  perform fixture.job(p_name, 'created');
  perform aivedio.claim_submits('worker', 10, 'https://us.example');
  perform pg_temp.settle(p_name, '{"kind": "timeout", "error": "ReadTimeout"}');
  return aivedio.resolve_case(known.id, 'failed', 'ops@example.com', 'it was not found')
  from aivedio.reconciliation_cases as known
  where known.attempt_id = fixture.id('attempt of ' || p_name);
end;
$given_up$;

-- The answer comes after all.
select pg_temp.given_up('a');
select is(pg_temp.attempt_of('a'), 'failed rejected', 'an operator gives a submission up');
select is(pg_temp.settle('a', '{"kind": "timeout", "error": "ReadTimeout"}'), 'duplicate failed', 'ignorance is no news');
select is(pg_temp.settle('a', '{"kind": "response", "http_status": 422, "body": {}}'), 'duplicate failed', 'nor is a refusal');
select is(pg_temp.settle('a', pg_temp.accepted('job-a')), 'after_terminal failed', 'then the worker answers: it was accepted');
select is(pg_temp.attempt_of('a'), 'failed accepted job-a', 'the provider''s id is kept, and the end');
select is(pg_temp.open_cases('a'), 'stale_success 1', 'something runs and costs: a case');
select is(
  (select known.evidence #>> '{0,provider_task_id}' from aivedio.reconciliation_cases as known where known.kind = 'stale_success'),
  'job-a', 'which names the job'
);
select results_eq(
  $$ select task.status, task.error_code, task.version, count(event.event_id)
     from aivedio.generation_tasks as task join aivedio.task_events as event on event.task_id = task.id
     where task.id = fixture.id('a') group by task.id $$,
  $$ values ('failed', 'submit_unknown', 3::bigint, 2::bigint) $$,
  'the task is not touched'
);
select is(
  (select attempt.next_poll_at from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of a')), null, 'and what is over is not polled'
);
select is(pg_temp.settle('a', pg_temp.accepted('job-a')), 'duplicate failed', 'the same answer again says nothing new');
select is(pg_temp.open_cases('a'), 'stale_success 1', 'and adds nothing');

-- A person finds it.
select pg_temp.given_up('b');
select is(pg_temp.record('b', 'job-b'), 'after_terminal', 'or somebody finds it at the provider');
select is(pg_temp.attempt_of('b') || ', ' || pg_temp.open_cases('b'), 'failed accepted job-b, stale_success 1', 'with the same effect');
select is(pg_temp.record('b', 'job-b'), 'duplicate', 'once');

-- A callback that says nothing but the id.
select pg_temp.given_up('c');
select aivedio._learn_job(fixture.id('attempt of c'), aivedio._profile('replicate'), 'job-c');
select is(pg_temp.attempt_of('c') || ', ' || pg_temp.open_cases('c'), 'failed accepted job-c, stale_success 1', 'or a callback names it');

-- The id of another attempt stays a contradiction.
select pg_temp.given_up('d');
select is(pg_temp.settle('d', pg_temp.accepted('job-a')), 'conflict failed', 'an id that another attempt holds is not taken');
select is(pg_temp.attempt_of('d') || ', ' || pg_temp.open_cases('d'), 'failed rejected, mapping 1', 'but is a case');

-- A task that its user canceled before the application recorded that it had submitted it.
select fixture.job('e', 'created');
update aivedio.task_attempts set submit_state = 'application' where id = fixture.id('attempt of e');
select aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id('e'), fixture.id('user'));
select is(pg_temp.attempt_of('e'), 'canceled withdrawn', 'what nobody submitted is canceled at once');
select is(pg_temp.record('e', 'job-e'), 'after_terminal', 'the application had submitted it');
select is(pg_temp.attempt_of('e') || ', ' || pg_temp.open_cases('e'), 'canceled accepted job-e, stale_success 1', 'it runs and costs: a case');

-- What the provider itself refused is final.
select fixture.job('f', 'created');
select aivedio.claim_submits('worker', 10, 'https://us.example');
select pg_temp.settle('f', '{"kind": "response", "http_status": 422, "body": {}}');
select is(pg_temp.settle('f', pg_temp.accepted('job-f')), 'duplicate failed', 'a refusal is an answer: there is no second one');
select is(pg_temp.record('f', 'job-f'), 'refused', 'and nobody has it');

select finish();
rollback;
