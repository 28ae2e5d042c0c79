-- Stage 30: DashScope's profile understands the bodies that DashScope documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(16);

insert into example (source, body, expected, why) values
  ('poll', '{"request_id": "q1", "output": {"task_id": "t1", "task_status": "PENDING", "submit_time": "2026-06-24 11:00:00.000"}}',
    '{"task": "t1", "word": "PENDING", "status": "queued"}', 'waits; a time without a zone is not read'),
  ('poll', '{"request_id": "q1", "output": {"task_id": "t1", "task_status": "RUNNING"}}',
    '{"task": "t1", "word": "RUNNING", "status": "running"}', 'runs'),
  ('poll', '{"request_id": "q1", "output": {"task_id": "t1", "task_status": "SUSPENDED"}}',
    '{"task": "t1", "word": "SUSPENDED", "status": "running"}', 'is held up'),
  ('poll', '{"request_id": "q1", "output": {"task_id": "t1", "task_status": "SUCCEEDED", "video_url": "https://dashscope-result.example/v.mp4", "end_time": "2026-06-24 11:05:00.000"}, "usage": {"video_count": 1}}',
    '{"task": "t1", "word": "SUCCEEDED", "status": "succeeded", "urls": ["https://dashscope-result.example/v.mp4"], "lives": 86400}', 'success'),
  ('poll', '{"request_id": "q1", "output": {"task_id": "t1", "task_status": "SUCCEEDED"}}',
    '{"task": "t1", "word": "SUCCEEDED", "status": "succeeded"}', 'success without a video has no output'),
  ('poll', '{"request_id": "q1", "output": {"task_id": "t1", "task_status": "FAILED", "code": "DataInspectionFailed", "message": "Output data may contain inappropriate content."}}',
    '{"task": "t1", "word": "FAILED", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "Output data may contain inappropriate content."}', 'failure for its content'),
  ('poll', '{"request_id": "q1", "output": {"task_id": "t1", "task_status": "FAILED", "code": "InternalError", "message": "boom"}}',
    '{"task": "t1", "word": "FAILED", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "boom"}', 'failure'),
  ('poll', '{"request_id": "q1", "output": {"task_id": "t1", "task_status": "CANCELED"}}',
    '{"task": "t1", "word": "CANCELED", "status": "canceled", "class": "canceled", "code": "canceled_by_provider"}', 'canceled, with one l'),
  ('poll', '{"request_id": "q1", "output": {"task_id": "t1", "task_status": "UNKNOWN"}}',
    '{"task": "t1", "word": "UNKNOWN"}', 'UNKNOWN is no status'),
  ('poll', '{"request_id": "q1", "output": {"task_id": "t1", "task_status": "Succeeded"}}',
    '{"task": "t1", "word": "Succeeded"}', 'words are case-sensitive');

select pg_temp.judge('dashscope');

select is(
  aivedio._answer_meaning(aivedio._profile('dashscope'), given.request, given.status, given.body), given.meaning,
  format('%s: %s %s means %s', given.request, given.status, given.body, given.meaning)
)
from (values
  ('poll', 200, '{"output": {"task_id": "t1", "task_status": "UNKNOWN"}}'::jsonb, 'not_found'),
  ('poll', 200, '{"output": {"task_id": "t1", "task_status": "RUNNING"}}', 'body'),
  ('poll', 429, '{"code": "Throttling"}', 'throttled'),
  ('cancel', 400, '{"code": "UnsupportedOperation"}', 'refused'),
  ('cancel', 200, '{"code": "UnsupportedOperation"}', 'refused'),
  ('cancel', 200, '{"request_id": "q1"}', 'body')
) as given (request, status, body, meaning);

select finish();
rollback;
