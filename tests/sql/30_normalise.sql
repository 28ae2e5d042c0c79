-- Stage 30: normalise understands a payload by its profile alone, the same for callbacks and polls.
begin;
\ir support/fixtures.sql
select plan(48);

-- A provider with everything that Replicate lacks.
select aivedio.define_provider('lumen', $profile$
{
  "base_url": "https://api.lumen.example",
  "auth": {"kind": "none"},
  "submit": {"method": "POST", "path": "/jobs", "accepted": [200], "provider_task_id": "$.job.id"},
  "poll": {
    "method": "GET", "path": "/jobs/{provider_task_id}",
    "http": {"422": "failed", "410": "canceled"}
  },
  "webhook": {"scheme": "standard-webhooks-v1", "secrets": [{"ref": "env:LUMEN", "version": "current"}]},
  "fields": {
    "provider_task_id": "$.job.id", "client_request_id": "$.job.tag", "status": "$.job.state",
    "progress": "$.job.done", "progress_scale": 1, "sequence": "$.seq", "revision": "$.rev",
    "occurred_at": ["$.job.ended", "$.job.began"],
    "error_code": "$.job.error.code", "error_message": "$.job.error.text",
    "outputs": [{"path": "$.job.files[*].url", "kind": "video"}, {"path": "$.job.poster", "kind": "image"}]
  },
  "words": {
    "webhook": {"WAIT": "queued", "WORK": "running", "OK": "succeeded", "BAD": "failed", "GONE": "canceled"},
    "poll": {"WAIT": "queued", "WORK": "running", "DONE": "succeeded", "BAD": "failed", "GONE": "canceled"}
  },
  "hidden_failures": [
    {"when": "$.job.error.code == \"PARTIAL\"", "class": "partial", "code": "provider_failed"},
    {"when": "$.job.withdrawn == true", "status": "canceled"}
  ],
  "errors": [
    {"match": "^E42\\M", "class": "content_refused", "code": "content_refused"},
    {"match": "too slow", "class": "slow", "code": "timed_out"}
  ],
  "max_outputs": 3,
  "output_lifetime_s": 86400
}
$profile$);

create function pg_temp.says(p_payload jsonb, p_source text default 'webhook', p_http jsonb default '{}')
returns aivedio.provider_observation
language sql
as $says$
  select aivedio.normalise('lumen', p_source, p_payload, p_http);
$says$;

create function pg_temp.job(p_job jsonb)
returns jsonb
language sql
as $job$
  select jsonb_build_object('job', p_job);
$job$;

-- Who is meant.
select is((pg_temp.says('{"job": {"id": "j1", "tag": "r1", "state": "WORK"}, "seq": 7, "rev": "2"}')).provider_task_id, 'j1', 'the provider''s id');
select is((pg_temp.says('{"job": {"id": "j1", "tag": "r1", "state": "WORK"}}')).client_request_id, 'r1', 'our id');
select is((pg_temp.says('{"job": {"state": "WORK"}, "seq": 7}')).provider_sequence, 7::bigint, 'the sequence');
select is((pg_temp.says('{"job": {"state": "WORK"}, "rev": "2"}')).provider_revision, 2::bigint, 'the revision');
select is((pg_temp.says('{"job": {"state": "WORK"}}')).source, 'webhook', 'the source is kept');
select is((pg_temp.says('{"job": {"state": "WORK"}}')).received_at, aivedio._clock(), 'received now');

-- Words are translated by the list of their source.
select results_eq(
  $$
    select word, source, (pg_temp.says(pg_temp.job(jsonb_build_object('state', word)), source)).normalized_status
    from (values ('WAIT', 'webhook'), ('WORK', 'webhook'), ('OK', 'webhook'), ('BAD', 'webhook'), ('GONE', 'webhook'),
      ('DONE', 'webhook'), ('DONE', 'poll'), ('OK', 'poll'), ('DONE', 'reconcile'), ('work', 'poll')) as given (word, source)
  $$,
  $$
    values ('WAIT', 'webhook', 'queued'), ('WORK', 'webhook', 'running'), ('OK', 'webhook', 'succeeded'),
      ('BAD', 'webhook', 'failed'), ('GONE', 'webhook', 'canceled'),
      ('DONE', 'webhook', null), ('DONE', 'poll', 'succeeded'), ('OK', 'poll', null), ('DONE', 'reconcile', 'succeeded'),
      ('work', 'poll', null)
  $$,
  'each source has its own words; reconciliation speaks the poll''s; a word in other letters is another word'
);
select is((pg_temp.says('{"job": {"state": "PAUSED"}}')).provider_word, 'PAUSED', 'P1: an unknown word is kept as it is');
select is((pg_temp.says('{"job": {"state": "PAUSED"}}')).normalized_status, null, 'P1: and means nothing');
select is((pg_temp.says('{"job": {"state": 5}}')).provider_word, '5', 'a status that is a number is a word');
select is((pg_temp.says('{}')).provider_word, null, 'no status is no word');
select is(length((pg_temp.says(pg_temp.job(jsonb_build_object('state', repeat('x', 5000))))).provider_word), 100, 'a huge word is cut');

-- Progress: any scale, cut to 0 to 100, only while the job runs.
select results_eq(
  $$
    select (pg_temp.says(pg_temp.job(jsonb_build_object('state', state, 'done', done)))).progress
    from (values
      (1, 'WORK', '0'::jsonb), (2, 'WORK', '0.426'), (3, 'WORK', '1'), (4, 'WORK', '1.7'), (5, 'WORK', '-1'), (6, 'WORK', '"0.5"'),
      (7, 'WORK', '"soon"'), (8, 'WORK', 'null'), (9, 'WAIT', '0.1'), (10, 'OK', '0.9'), (11, 'WORK', '1e300')
    ) as given (place, state, done)
    order by place
  $$,
  $$ values (0::smallint), (42::smallint), (100::smallint), (100::smallint), (null), (50::smallint), (null), (null), (10::smallint), (null), (null) $$,
  'progress on a scale of 1: floored, cut, null below zero or when unreadable'
);

-- Time: the first path that holds one; a bad one is none.
select is(
  (pg_temp.says('{"job": {"state": "OK", "began": "2026-06-24T03:00:00Z", "ended": "2026-06-24T03:09:00Z"}}')).provider_occurred_at,
  '2026-06-24T03:09:00Z', 'the latest moment that is given'
);
select is(
  (pg_temp.says('{"job": {"state": "WORK", "began": "2026-06-24T03:00:00Z", "ended": null}}')).provider_occurred_at,
  '2026-06-24T03:00:00Z', 'a null is passed over'
);
select is((pg_temp.says('{"job": {"state": "WORK", "began": "soon"}}')).provider_occurred_at, null, 'a bad time is none');
select is((pg_temp.says('{"job": {"state": "WORK", "began": 0}}')).provider_occurred_at, null, 'a clock of 1970 is none');
select is((pg_temp.says('{"job": {"state": "WORK", "began": "2100-01-01T00:00:00Z"}}')).provider_occurred_at, null, 'a clock of 2100 is none');

-- Outputs, by kind, in order.
select is(
  (pg_temp.says('{"job": {"state": "OK", "files": [{"url": "https://l.example/1"}, {"url": "https://l.example/2"}], "poster": "https://l.example/p"}}')).output_refs,
  '[{"kind": "video", "url": "https://l.example/1", "expires_in_s": 86400},
    {"kind": "video", "url": "https://l.example/2", "expires_in_s": 86400},
    {"kind": "image", "url": "https://l.example/p", "expires_in_s": 86400}]'::jsonb,
  'all rules, in the profile''s order'
);
select is((pg_temp.says('{"job": {"state": "OK", "files": []}}')).output_refs, null, 'no file is no output');
select is(
  (pg_temp.says('{"job": {"state": "OK", "files": [{"url": "ftp://x"}, {"url": "javascript:alert(1)"}, {"url": 5}, {}, "x", null]}}')).output_refs,
  null, 'only http and https URLs count'
);
select is(
  (pg_temp.says(pg_temp.job(jsonb_build_object('state', 'OK', 'poster', 'https://l.example/' || repeat('x', 8200))))).output_refs,
  null, 'a URL beyond all sense is none'
);
select is((pg_temp.says('{"job": {"state": "WORK", "poster": "https://l.example/p"}}')).output_refs, null, 'a job that runs has no outputs');
select throws_ok(
  $$
    select pg_temp.says(pg_temp.job(jsonb_build_object('state', 'OK', 'files',
      (select jsonb_agg(jsonb_build_object('url', 'https://l.example/' || n)) from generate_series(1, 10000) as n))))
  $$,
  'VC304', 'a result has too many outputs', 'ten thousand outputs are refused'
);

-- A success that hides a failure.
select is((pg_temp.says('{"job": {"state": "OK", "error": {"code": "PARTIAL", "text": "half"}, "poster": "https://l.example/p"}}')).normalized_status, 'failed', 'a hidden failure is a failure');
select is((pg_temp.says('{"job": {"state": "OK", "error": {"code": "PARTIAL", "text": "half"}, "poster": "https://l.example/p"}}')).error_class, 'partial', 'of its class');
select is((pg_temp.says('{"job": {"state": "OK", "error": {"code": "PARTIAL", "text": "half"}, "poster": "https://l.example/p"}}')).output_refs, null, 'and has no outputs');
select is((pg_temp.says('{"job": {"state": "OK", "withdrawn": true}}')).normalized_status, 'canceled', 'a success may hide a cancellation');
select is((pg_temp.says('{"job": {"state": "OK", "withdrawn": "yes"}}')).normalized_status, 'succeeded', 'a rule that does not hold hides nothing');

-- Errors: our own codes outside, the provider's text inside.
select is((pg_temp.says('{"job": {"state": "BAD", "error": {"code": "E42", "text": "no"}}}')).error_code, 'content_refused', 'a rule on the code');
select is((pg_temp.says('{"job": {"state": "BAD", "error": {"code": "E1", "text": "Too SLOW, sorry"}}}')).error_code, 'timed_out', 'a rule on the text, in any letters');
select is((pg_temp.says('{"job": {"state": "BAD", "error": {"code": "E421", "text": "?"}}}')).error_code, 'provider_failed', 'no rule: the general code');
select is((pg_temp.says('{"job": {"state": "BAD"}}')).error_class, 'provider_failed', 'no error text: the general class');
select is((pg_temp.says('{"job": {"state": "BAD", "error": {"code": "E1", "text": "disk on fire"}}}')).error_detail, 'disk on fire', 'P5: the provider''s own words are kept');
select is(
  (pg_temp.says('{"job": {"state": "BAD", "error": {"text": {"at": "step 3"}}}}')).error_detail, '{"at": "step 3"}',
  'P5: detail fields are kept too'
);
select is(length((pg_temp.says(pg_temp.job(jsonb_build_object('state', 'BAD', 'error', jsonb_build_object('text', repeat('x', 100000)))))).error_detail), 1000, 'a huge text is cut');
select is((pg_temp.says('{"job": {"state": "GONE"}}')).error_code, 'canceled_by_provider', 'a cancellation says who');
select is((pg_temp.says('{"job": {"state": "WORK", "error": {"code": "E42", "text": "no"}}}')).error_code, null, 'a job that runs has no error');

-- The HTTP status of a poll may say it all.
select is((pg_temp.says('{"job": {"error": {"text": "E42 no"}}}', 'poll', '{"status": 422}')).normalized_status, 'failed', 'P2: 422 is a failure where the profile says so');
select is((pg_temp.says('{"job": {"error": {"text": "E42 no"}}}', 'poll', '{"status": 422}')).error_code, 'content_refused', 'P2: with the provider''s own reason');
select is((pg_temp.says('{}', 'poll', '{"status": 410}')).normalized_status, 'canceled', 'and 410 a cancellation');
select is((pg_temp.says('{"job": {"state": "WORK"}}', 'poll', '{"status": 200}')).normalized_status, 'running', '200 leaves the word to the body');
select is((pg_temp.says('{"job": {"state": "WORK"}}', 'webhook', '{"status": 422}')).normalized_status, 'running', 'a callback has no status line');

-- What cannot be understood at all.
select throws_ok($$ select pg_temp.says('[]') $$, 'VC303', 'payload must be a JSON object', 'an array is no payload');
select throws_ok($$ select pg_temp.says(null) $$, 'VC303', 'payload must be a JSON object', 'nothing is no payload');
select throws_ok($$ select aivedio.normalise('nobody', 'poll', '{}') $$, 'VC301', 'provider is not defined', 'an unknown provider');
select throws_ok($$ select pg_temp.says('{}', 'rumour') $$, 'VC302', 'source must be webhook, poll or reconcile', 'an unknown source');

set local role aivedio_operator;
select lives_ok($$ select aivedio.normalise('lumen', 'poll', '{"job": {"state": "DONE"}}') $$, 'operators may try a payload');

select finish();
rollback;
