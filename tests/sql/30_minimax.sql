-- Stage 30: MiniMax's profile understands the bodies that MiniMax documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(29);

insert into example (source, body, expected, why) values
  ('poll', '{"task_id": "1", "status": "Preparing", "file_id": "", "base_resp": {"status_code": 0, "status_msg": "success"}}',
    '{"task": "1", "word": "Preparing", "status": "queued"}', 'is prepared'),
  ('poll', '{"task_id": "1", "status": "Queueing", "base_resp": {"status_code": 0}}',
    '{"task": "1", "word": "Queueing", "status": "queued"}', 'waits'),
  ('poll', '{"task_id": "1", "status": "Processing", "base_resp": {"status_code": 0}}',
    '{"task": "1", "word": "Processing", "status": "running"}', 'runs'),
  ('poll', '{"task_id": "1", "status": "Success", "file_id": "9", "video_width": 1920, "base_resp": {"status_code": 0}, "retrieved": {"file": {"file_id": 9, "download_url": "https://cdn.example/o.mp4"}, "base_resp": {"status_code": 0}}}',
    '{"task": "1", "word": "Success", "status": "succeeded", "urls": ["https://cdn.example/o.mp4"], "lives": 3600}', 'success, with the file that the second request brings'),
  ('poll', '{"task_id": "1", "status": "Success", "file_id": "", "base_resp": {"status_code": 0}}',
    '{"task": "1", "word": "Success", "status": "succeeded"}', 'success without a file has no output'),
  ('poll', '{"task_id": "1", "status": "Fail", "base_resp": {"status_code": 1027, "status_msg": "output new_sensitive"}}',
    '{"task": "1", "word": "Fail", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "output new_sensitive"}', 'failure for its content'),
  ('poll', '{"task_id": "1", "status": "Fail", "base_resp": {"status_code": 0, "status_msg": "success"}}',
    '{"task": "1", "word": "Fail", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "success"}', 'failure'),
  ('poll', '{"task_id": "1", "status": "success", "base_resp": {"status_code": 0}}',
    '{"task": "1", "word": "success"}', 'the word of callbacks is none here'),
  ('poll', '{"task_id": "1", "status": "Expired"}',
    '{"task": "1", "word": "Expired"}', 'an unknown word'),
  ('webhook', '{"task_id": "1", "status": "processing", "base_resp": {"status_code": 0}}',
    '{"task": "1", "word": "processing", "status": "running"}', 'runs, in lower case'),
  ('webhook', '{"task_id": "1", "status": "success", "file_id": "9", "base_resp": {"status_code": 0}}',
    '{"task": "1", "word": "success", "status": "succeeded"}', 'success, in lower case, without its file'),
  ('webhook', '{"task_id": "1", "status": "failed", "base_resp": {"status_code": 1026, "status_msg": "new_sensitive"}}',
    '{"task": "1", "word": "failed", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "new_sensitive"}', 'failure is "failed"'),
  ('webhook', '{"task_id": "1", "status": "fail"}',
    '{"task": "1", "word": "fail"}', 'not "fail"');

select pg_temp.judge('minimax');

-- An error is an HTTP 200 with a code, and a failed job's code is no error of the query.
select is(
  aivedio._answer_meaning(aivedio._profile('minimax'), given.request, 200, given.body), given.meaning,
  format('%s: %s means %s', given.request, given.body, given.meaning)
)
from (values
  ('submit', '{"task_id": "1", "base_resp": {"status_code": 0}}'::jsonb, 'body'),
  ('submit', '{"task_id": "", "base_resp": {"status_code": 1002}}', 'throttled'),
  ('submit', '{"base_resp": {"status_code": 1004}}', 'auth'),
  ('submit', '{"base_resp": {"status_code": 2049}}', 'auth'),
  ('submit', '{"base_resp": {"status_code": 1008}}', 'refused'),
  ('poll', '{"base_resp": {"status_code": 1002}}', 'throttled'),
  ('poll', '{"base_resp": {"status_code": 1004}}', 'auth'),
  ('poll.then', '{"base_resp": {"status_code": 1002}}', 'throttled'),
  ('poll.then', '{"base_resp": {"status_code": 2049}}', 'auth'),
  ('poll', '{"status": "", "base_resp": {"status_code": 1000}}', 'retry'),
  ('poll', '{"status": "Fail", "base_resp": {"status_code": 1027}}', 'body'),
  ('poll.then', '{"base_resp": {"status_code": 1000}}', 'retry'),
  ('poll.then', '{"base_resp": {"status_code": 0}}', 'body')
) as given (request, body, meaning);

select is(
  (aivedio._read_submit(aivedio._profile('minimax'), jsonb_build_object('kind', 'response', 'http_status', 200, 'body', given.body))).error_code,
  given.code, format('a refused submission: %s', given.body)
)
from (values
  ('{"base_resp": {"status_code": 1026, "status_msg": "new_sensitive"}}'::jsonb, 'content_refused'),
  ('{"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}', 'provider_busy'),
  ('{"base_resp": {"status_code": 2013, "status_msg": "bad"}}', 'provider_rejected')
) as given (body, code);

select finish();
rollback;
