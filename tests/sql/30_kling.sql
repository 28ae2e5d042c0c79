-- Stage 30: Kling's profile understands the bodies that Kling documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(22);

insert into example (source, body, expected, why) values
  ('poll', '{"code": 0, "message": "SUCCEED", "request_id": "q1", "data": [{"id": "1", "external_id": "job-1", "status": "submitted", "message": "", "create_time": 1782270000000, "update_time": 1782270001000}]}',
    '{"task": "1", "client": "job-1", "word": "submitted", "status": "queued", "at": "2026-06-24T03:00:01Z"}', 'waits; times are milliseconds'),
  ('poll', '{"code": 0, "message": "SUCCEED", "request_id": "q1", "data": [{"id": "1", "external_id": "job-1", "status": "processing", "message": ""}]}',
    '{"task": "1", "client": "job-1", "word": "processing", "status": "running"}', 'runs'),
  ('poll', '{"code": 0, "message": "SUCCEED", "request_id": "q1", "data": [{"id": "1", "status": "succeeded", "message": "", "outputs": [{"type": "video", "id": "o1", "url": "https://cdn.example/o.mp4", "watermark_url": "https://cdn.example/w.mp4", "duration": "5"}]}]}',
    '{"task": "1", "word": "succeeded", "status": "succeeded", "urls": ["https://cdn.example/o.mp4"], "lives": 2592000}', 'success, without the copy that bears a mark'),
  ('poll', '{"code": 0, "message": "SUCCEED", "request_id": "q1", "data": [{"id": "1", "status": "failed", "message": "Failure to pass the risk control system"}]}',
    '{"task": "1", "word": "failed", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "Failure to pass the risk control system"}', 'failure for its content'),
  ('poll', '{"code": 0, "message": "SUCCEED", "request_id": "q1", "data": [{"id": "1", "status": "failed", "message": ""}]}',
    '{"task": "1", "word": "failed", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure'),
  ('poll', '{"code": 0, "message": "SUCCEED", "request_id": "q1", "data": [{"id": "1", "status": "succeed"}]}',
    '{"task": "1", "word": "succeed"}', 'the word of older models is none here'),
  ('poll', '{"code": 0, "message": "SUCCEED", "request_id": "q1", "data": []}',
    '{}', 'an empty list says nothing'),
  ('webhook', '{"id": "1", "external_id": "job-1", "status": "submitted", "message": ""}',
    '{"task": "1", "client": "job-1", "word": "submitted", "status": "queued"}', 'waits: a callback is flat'),
  ('webhook', '{"id": "1", "external_id": "job-1", "status": "processing"}',
    '{"task": "1", "client": "job-1", "word": "processing", "status": "running"}', 'runs'),
  ('webhook', '{"id": "1", "external_id": "job-1", "status": "succeeded", "update_time": 1782270001000, "outputs": [{"type": "video", "id": "o1", "url": "https://cdn.example/o.mp4"}]}',
    '{"task": "1", "client": "job-1", "word": "succeeded", "status": "succeeded", "at": "2026-06-24T03:00:01Z", "urls": ["https://cdn.example/o.mp4"], "lives": 2592000}', 'success'),
  ('webhook', '{"id": "1", "status": "failed", "message": "task timed out"}',
    '{"task": "1", "word": "failed", "status": "failed", "class": "provider_timeout", "code": "timed_out", "detail": "task timed out"}', 'failure'),
  ('webhook', '{"id": "1", "status": "canceled"}',
    '{"task": "1", "word": "canceled"}', 'there is no such word');

select pg_temp.judge('kling');

-- An error is an HTTP 200 with a code.
select is(
  aivedio._answer_meaning(aivedio._profile('kling'), given.request, 200, given.body), given.meaning,
  format('%s: %s means %s', given.request, given.body, given.meaning)
)
from (values
  ('submit', '{"code": 0, "data": {"id": "1"}}'::jsonb, 'body'),
  ('submit', '{"code": 1303, "message": "parallel task over resource pack limit"}', 'throttled'),
  ('submit', '{"code": 1201, "message": "bad"}', 'refused'),
  ('poll', '{"code": 0, "data": [{"id": "1"}]}', 'body'),
  ('poll', '{"code": 1303}', 'throttled'),
  ('poll', '{"code": 5000}', 'retry'),
  ('poll', '{"code": 0, "data": []}', 'not_found'),
  ('poll', '{"code": 0, "data": {"id": "1"}}', 'body'),
  ('poll', '[]', 'body')
) as given (request, body, meaning);

select is(
  pg_temp.kept('kling', '{"id": "1", "status": "succeeded", "outputs": [{"url": "https://cdn.example/o.mp4"}]}'),
  '{"id": "1", "status": "succeeded", "outputs": "[redacted]"}', 'the outputs of an applied callback are not kept'
);

select finish();
rollback;
