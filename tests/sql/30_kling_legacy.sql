-- Stage 30: Kling's legacy profile understands the bodies of its older models.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(14);

insert into example (source, body, expected, why) values
  ('poll', '{"code": 0, "message": "SUCCEED", "request_id": "q1", "data": {"task_id": "1", "task_status": "submitted", "updated_at": 1782270001000}}',
    '{"task": "1", "word": "submitted", "status": "queued", "at": "2026-06-24T03:00:01Z"}', 'waits'),
  ('poll', '{"code": 0, "data": {"task_id": "1", "task_status": "processing", "task_status_msg": ""}}',
    '{"task": "1", "word": "processing", "status": "running"}', 'runs'),
  ('poll', '{"code": 0, "data": {"task_id": "1", "task_status": "succeed", "task_result": {"videos": [{"id": "v1", "url": "https://cdn.example/o.mp4", "duration": "5"}]}}}',
    '{"task": "1", "word": "succeed", "status": "succeeded", "urls": ["https://cdn.example/o.mp4"], "lives": 2592000}', 'success is "succeed"'),
  ('poll', '{"code": 0, "data": {"task_id": "1", "task_status": "succeeded"}}',
    '{"task": "1", "word": "succeeded"}', 'and no other word'),
  ('poll', '{"code": 0, "data": {"task_id": "1", "task_status": "failed", "task_status_msg": "invalid image"}}',
    '{"task": "1", "word": "failed", "status": "failed", "class": "invalid_input", "code": "provider_rejected", "detail": "invalid image"}', 'failure'),
  ('webhook', '{"task_id": "1", "task_status": "submitted"}',
    '{"task": "1", "word": "submitted", "status": "queued"}', 'waits'),
  ('webhook', '{"task_id": "1", "task_status": "processing", "task_status_msg": ""}',
    '{"task": "1", "word": "processing", "status": "running"}', 'runs: a callback has the fields at its top'),
  ('webhook', '{"task_id": "1", "task_status": "succeed", "updated_at": 1782270001000, "task_result": {"videos": [{"id": "v1", "url": "https://cdn.example/o.mp4"}]}}',
    '{"task": "1", "word": "succeed", "status": "succeeded", "at": "2026-06-24T03:00:01Z", "urls": ["https://cdn.example/o.mp4"], "lives": 2592000}', 'success'),
  ('webhook', '{"task_id": "1", "task_status": "failed", "task_status_msg": "sensitive content"}',
    '{"task": "1", "word": "failed", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "sensitive content"}', 'failure for its content'),
  ('webhook', '{"task_id": "1", "task_status": "paused"}',
    '{"task": "1", "word": "paused"}', 'an unknown word');

select pg_temp.judge('kling_legacy');

select is(
  aivedio._answer_meaning(aivedio._profile('kling_legacy'), given.request, 200, given.body), given.meaning,
  format('%s: %s means %s', given.request, given.body, given.meaning)
)
from (values
  ('submit', '{"code": 1303}'::jsonb, 'throttled'), ('submit', '{"code": 1001}', 'refused'), ('poll', '{"code": 5000}', 'retry'),
  ('poll', '{"code": 1303}', 'throttled')
) as given (request, body, meaning);

select finish();
rollback;
