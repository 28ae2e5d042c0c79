-- Stage 30: D-ID's profile understands the bodies that D-ID documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(14);

insert into example (source, body, expected, why) values
  ('poll', '{"id": "tlk_1", "object": "talk", "status": "created", "user_data": "job-1"}',
    '{"task": "tlk_1", "client": "job-1", "word": "created", "status": "queued"}', 'waits'),
  ('poll', '{"id": "tlk_1", "status": "started", "modified_at": "2026-06-24T03:00:01.000Z"}',
    '{"task": "tlk_1", "word": "started", "status": "running", "at": "2026-06-24T03:00:01Z"}', 'runs'),
  ('poll', '{"id": "tlk_1", "status": "done", "result_url": "https://d-id.example/v.mp4", "user_data": "job-1"}',
    '{"task": "tlk_1", "client": "job-1", "word": "done", "status": "succeeded", "urls": ["https://d-id.example/v.mp4"], "lives": 3600}', 'success'),
  ('poll', '{"id": "tlk_1", "status": "done"}',
    '{"task": "tlk_1", "word": "done", "status": "succeeded"}', 'success without a result has no output'),
  ('poll', '{"id": "tlk_1", "status": "error", "error": {"kind": "FaceError", "description": "face not detected"}}',
    '{"task": "tlk_1", "word": "error", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "face not detected"}', 'failure'),
  ('poll', '{"id": "tlk_1", "status": "rejected", "error": {"kind": "CelebrityModeration", "description": "no"}}',
    '{"task": "tlk_1", "word": "rejected", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "no"}', 'rejected for its content'),
  ('poll', '{"id": "tlk_1", "status": "validating"}',
    '{"task": "tlk_1", "word": "validating"}', 'a word of translations'),
  ('webhook', '{"id": "tlk_1", "object": "talk", "status": "created", "user_data": "job-1"}',
    '{"task": "tlk_1", "client": "job-1", "word": "created", "status": "queued"}', 'waits'),
  ('webhook', '{"id": "tlk_1", "status": "started", "modified_at": "2026-06-24T03:00:01.000Z"}',
    '{"task": "tlk_1", "word": "started", "status": "running", "at": "2026-06-24T03:00:01Z"}', 'runs'),
  ('webhook', '{"id": "tlk_1", "status": "done", "result_url": "https://d-id.example/v.mp4", "user_data": "job-1"}',
    '{"task": "tlk_1", "client": "job-1", "word": "done", "status": "succeeded", "urls": ["https://d-id.example/v.mp4"], "lives": 3600}', 'success'),
  ('webhook', '{"id": "tlk_1", "status": "done"}',
    '{"task": "tlk_1", "word": "done", "status": "succeeded"}', 'success without a result has no output'),
  ('webhook', '{"id": "tlk_1", "status": "error", "error": {"kind": "FaceError", "description": "face not detected"}}',
    '{"task": "tlk_1", "word": "error", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "face not detected"}', 'failure'),
  ('webhook', '{"id": "tlk_1", "status": "rejected", "error": {"kind": "CelebrityModeration", "description": "no"}}',
    '{"task": "tlk_1", "word": "rejected", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "no"}', 'rejected for its content'),
  ('webhook', '{"id": "tlk_1", "status": "validating"}',
    '{"task": "tlk_1", "word": "validating"}', 'a word of translations');

select pg_temp.judge('did');

select finish();
rollback;
