-- Stage 30: Seedance's profile understands the bodies that Ark documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(19);

insert into example (source, body, expected, why) values
  ('poll', '{"id": "cgt-1", "model": "m", "status": "queued", "created_at": 1782270000, "updated_at": 1782270000}',
    '{"task": "cgt-1", "word": "queued", "status": "queued", "at": "2026-06-24T03:00:00Z"}', 'waits'),
  ('poll', '{"id": "cgt-1", "status": "running", "updated_at": 1782270100}',
    '{"task": "cgt-1", "word": "running", "status": "running", "at": "2026-06-24T03:01:40Z"}', 'runs'),
  ('poll', '{"id": "cgt-1", "status": "succeeded", "content": {"video_url": "https://ark.example/v.mp4"}, "usage": {"completion_tokens": 1}}',
    '{"task": "cgt-1", "word": "succeeded", "status": "succeeded", "urls": ["https://ark.example/v.mp4"], "lives": 86400}', 'success'),
  ('poll', '{"id": "cgt-1", "status": "succeeded", "content": {"video_url": "https://ark.example/v.mp4", "last_frame_url": "https://ark.example/f.png"}}',
    '{"task": "cgt-1", "word": "succeeded", "status": "succeeded", "urls": ["https://ark.example/v.mp4", "https://ark.example/f.png"], "kinds": ["image", "video"], "lives": 86400}', 'success with its last frame'),
  ('poll', '{"id": "cgt-1", "status": "failed", "error": {"code": "OutputVideoSensitiveContentDetected", "message": "no"}}',
    '{"task": "cgt-1", "word": "failed", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "no"}', 'failure for its content'),
  ('poll', '{"id": "cgt-1", "status": "failed", "error": {"code": "InternalServiceError", "message": "boom"}}',
    '{"task": "cgt-1", "word": "failed", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "boom"}', 'failure'),
  ('poll', '{"id": "cgt-1", "status": "expired"}',
    '{"task": "cgt-1", "word": "expired", "status": "failed", "class": "provider_timeout", "code": "timed_out"}', 'not done in time'),
  ('poll', '{"id": "cgt-1", "status": "cancelled"}',
    '{"task": "cgt-1", "word": "cancelled", "status": "canceled", "class": "canceled", "code": "canceled_by_provider"}', 'canceled, with two l'),
  ('poll', '{"id": "cgt-1", "status": "canceled"}',
    '{"task": "cgt-1", "word": "canceled"}', 'with one l it is another word'),
  ('webhook', '{"id": "cgt-1", "model": "m", "status": "queued", "created_at": 1782270000, "updated_at": 1782270000}',
    '{"task": "cgt-1", "word": "queued", "status": "queued", "at": "2026-06-24T03:00:00Z"}', 'waits'),
  ('webhook', '{"id": "cgt-1", "status": "running", "updated_at": 1782270100}',
    '{"task": "cgt-1", "word": "running", "status": "running", "at": "2026-06-24T03:01:40Z"}', 'runs'),
  ('webhook', '{"id": "cgt-1", "status": "succeeded", "content": {"video_url": "https://ark.example/v.mp4"}, "usage": {"completion_tokens": 1}}',
    '{"task": "cgt-1", "word": "succeeded", "status": "succeeded", "urls": ["https://ark.example/v.mp4"], "lives": 86400}', 'success'),
  ('webhook', '{"id": "cgt-1", "status": "succeeded", "content": {"video_url": "https://ark.example/v.mp4", "last_frame_url": "https://ark.example/f.png"}}',
    '{"task": "cgt-1", "word": "succeeded", "status": "succeeded", "urls": ["https://ark.example/v.mp4", "https://ark.example/f.png"], "kinds": ["image", "video"], "lives": 86400}', 'success with its last frame'),
  ('webhook', '{"id": "cgt-1", "status": "failed", "error": {"code": "OutputVideoSensitiveContentDetected", "message": "no"}}',
    '{"task": "cgt-1", "word": "failed", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "no"}', 'failure for its content'),
  ('webhook', '{"id": "cgt-1", "status": "failed", "error": {"code": "InternalServiceError", "message": "boom"}}',
    '{"task": "cgt-1", "word": "failed", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "boom"}', 'failure'),
  ('webhook', '{"id": "cgt-1", "status": "expired"}',
    '{"task": "cgt-1", "word": "expired", "status": "failed", "class": "provider_timeout", "code": "timed_out"}', 'not done in time'),
  ('webhook', '{"id": "cgt-1", "status": "cancelled"}',
    '{"task": "cgt-1", "word": "cancelled", "status": "canceled", "class": "canceled", "code": "canceled_by_provider"}', 'canceled, with two l'),
  ('webhook', '{"id": "cgt-1", "status": "canceled"}',
    '{"task": "cgt-1", "word": "canceled"}', 'with one l it is another word');

select pg_temp.judge('seedance');

select is(
  aivedio._answer_meaning(aivedio._profile('seedance'), 'cancel', 400, '{"error": {"code": "InvalidAction"}}'), 'refused', 'a job that runs is not canceled'
);

select finish();
rollback;
