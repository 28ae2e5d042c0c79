-- Stage 10: whatever a signed callback holds, it is stored and then applied, ignored or dead; never half applied, and never in the way of others.
begin;
\ir support/fixtures.sql
select plan(20);

-- A provider that is read in every field.
select aivedio.define_provider('lumen', (
  select profile || '{"fields": {
    "provider_task_id": "$.id", "client_request_id": "$.ref", "status": "$.status", "progress": "$.pct", "sequence": "$.seq", "occurred_at": ["$.at"],
    "outputs": "$.out", "error_message": "$.error", "revision": "$.rev"
  }, "words": {"webhook": {"Q": "queued", "R": "running", "OK": "succeeded", "BAD": "failed"}, "poll": {"R": "running"}}}'
  from aivedio.providers where name = 'replicate'
));

create function pg_temp.job(p_name text)
returns void
language sql
as $job$
  select fixture.task(p_name, 'submitted', p_provider => 'lumen');
  select fixture.attempt(p_name, 'attempt of ' || p_name, 'submitted', p_provider_task_id => 'job-' || p_name);
$job$;

create function pg_temp.send(p_name text, p_body text)
returns text
language sql
as $send$
  select aivedio.accept_callbacks(array[row(
    1, 'lumen', jsonb_build_object('webhook-id', 'evt-' || p_name), p_body, sha256(convert_to(p_body, 'UTF8')), 'current', true, null, 'trace', null
  )::aivedio.received_callback])::text;
$send$;

create temporary table sent (name text primary key, body text, row_says text, task_says text);
insert into sent values
  ('nul',       '{"id": "job-nul", "status": "R", "note": "\u0000"}',                                  'dead - not_json', 'submitted -'),
  ('surrogate', '{"id": "job-surrogate", "status": "R", "note": "\ud800"}',                            'dead - not_json', 'submitted -'),
  ('deep',      repeat('[', 20000) || repeat(']', 20000),                                                'dead - not_json', 'submitted -'),
  ('list',      '[1, 2]',                                                                                'dead - not_object', 'submitted -'),
  ('typed',     '{"id": "job-typed", "status": {"R": 1}, "pct": "much", "seq": [], "at": {}}',          'done unknown_word -', 'submitted -'),
  ('word',      '{"id": "job-word", "status": "melting"}',                                              'done unknown_word -', 'submitted -'),
  ('overflow',  '{"id": "job-overflow", "status": "R", "seq": 1e30, "rev": 99999999999999999999}',      'done applied -', 'running -'),
  ('negative',  '{"id": "job-negative", "status": "R", "seq": -5, "pct": -5}',                          'done applied -', 'running -'),
  ('percent',   '{"id": "job-percent", "status": "R", "pct": 1e300}',                                   'done applied -', 'running -'),
  ('past',      '{"id": "job-past", "status": "R", "at": "1970-01-01T00:00:00Z"}',                      'done applied -', 'running -'),
  ('future',    '{"id": "job-future", "status": "R", "at": "2100-01-01T00:00:00Z"}',                    'done applied -', 'running -'),
  ('never',     '{"id": "job-never", "status": "R", "at": "infinity"}',                                 'done applied -', 'running -'),
  ('outputs',   (select jsonb_build_object('id', 'job-outputs', 'status', 'OK', 'out', jsonb_agg('https://x.example/' || n)) from generate_series(1, 10000) as n)::text, 'dead - VC304', 'submitted -'),
  ('url',       '{"id": "job-url", "status": "OK", "out": "https://x.example/' || repeat('x', 20000) || '"}', 'done hint -', 'submitted -'),
  ('error',     '{"id": "job-error", "status": "BAD", "error": "' || repeat('x', 100000) || '"}',       'done applied -', 'failed -'),
  ('id',        '{"id": "' || repeat('x', 100000) || '", "status": "R"}',                                'retry orphan -', 'submitted -'),
  ('last',      '{"id": "job-last", "status": "R"}',                                                     'done applied -', 'running -');
select pg_temp.job(sent.name) from sent;
select pg_temp.send(sent.name, sent.body) from sent;

select lives_ok($$ select aivedio.process_inbox('{0,1,2,3,4,5,6,7}') $$, 'a batch of all of them is applied');
select is(
  concat_ws(' ', inbox.process_status, coalesce(inbox.verdict, '-'), coalesce(inbox.last_error_code, '-')) || ', ' || task.status || ' ' || coalesce(task.progress::text, '-'),
  sent.row_says || ', ' || sent.task_says, 'a callback with a bad ' || sent.name
)
from sent
join aivedio.provider_callback_inbox as inbox on inbox.dedup_key like '%evt-' || sent.name
join aivedio.generation_tasks as task on task.id = fixture.id(sent.name)
order by inbox.id;
select is((select count(seen.lag) from aivedio.observations as seen), 0::bigint, 'clocks that cannot be right tell no lag');
select is_empty(
  $$ select 1 from aivedio.task_events as event where octet_length(event.public_payload::text) > 1000 or event.public_payload::text like '%xxxx%' $$,
  'nothing of it is public'
);

select finish();
rollback;
