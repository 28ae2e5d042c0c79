-- Stage 30: Luma's profile understands the bodies that Luma documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(15);

insert into example (source, body, expected, why) values
  ('poll', '{"id": "g1", "state": "queued", "failure_reason": null, "created_at": "2026-06-24T03:00:00Z", "assets": {"video": null}}',
    '{"task": "g1", "word": "queued", "status": "queued"}', 'waits'),
  ('poll', '{"id": "g1", "state": "dreaming", "failure_reason": null, "created_at": "2026-06-24T03:00:00Z", "assets": {"video": null, "progress_video": "https://cdn.example/p.mp4"}}',
    '{"task": "g1", "word": "dreaming", "status": "running"}', 'runs'),
  ('poll', '{"id": "g1", "state": "completed", "assets": {"video": "https://cdn.example/v.mp4", "image": null, "progress_video": null}}',
    '{"task": "g1", "word": "completed", "status": "succeeded", "urls": ["https://cdn.example/v.mp4"], "lives": 3600}', 'success'),
  ('poll', '{"id": "g1", "state": "completed", "assets": {"video": null}}',
    '{"task": "g1", "word": "completed", "status": "succeeded"}', 'success without a video has no output'),
  ('poll', '{"id": "g1", "state": "failed", "failure_reason": "prompt did not pass moderation", "assets": {"video": null}}',
    '{"task": "g1", "word": "failed", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "prompt did not pass moderation"}', 'failure for its content'),
  ('poll', '{"id": "g1", "state": "failed", "failure_reason": null}',
    '{"task": "g1", "word": "failed", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure'),
  ('poll', '{"id": "g1", "state": "canceled"}',
    '{"task": "g1", "word": "canceled"}', 'an unknown word'),
  ('webhook', '{"id": "g1", "state": "queued", "failure_reason": null, "created_at": "2026-06-24T03:00:00Z", "assets": {"video": null}}',
    '{"task": "g1", "word": "queued", "status": "queued"}', 'waits (a hint when it comes)'),
  ('webhook', '{"id": "g1", "state": "dreaming", "failure_reason": null, "created_at": "2026-06-24T03:00:00Z", "assets": {"video": null, "progress_video": "https://cdn.example/p.mp4"}}',
    '{"task": "g1", "word": "dreaming", "status": "running"}', 'runs (a hint when it comes)'),
  ('webhook', '{"id": "g1", "state": "completed", "assets": {"video": "https://cdn.example/v.mp4", "image": null, "progress_video": null}}',
    '{"task": "g1", "word": "completed", "status": "succeeded", "urls": ["https://cdn.example/v.mp4"], "lives": 3600}', 'success (a hint when it comes)'),
  ('webhook', '{"id": "g1", "state": "completed", "assets": {"video": null}}',
    '{"task": "g1", "word": "completed", "status": "succeeded"}', 'success without a video has no output (a hint when it comes)'),
  ('webhook', '{"id": "g1", "state": "failed", "failure_reason": "prompt did not pass moderation", "assets": {"video": null}}',
    '{"task": "g1", "word": "failed", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "prompt did not pass moderation"}', 'failure for its content (a hint when it comes)'),
  ('webhook', '{"id": "g1", "state": "failed", "failure_reason": null}',
    '{"task": "g1", "word": "failed", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure (a hint when it comes)'),
  ('webhook', '{"id": "g1", "state": "canceled"}',
    '{"task": "g1", "word": "canceled"}', 'an unknown word (a hint when it comes)');

select pg_temp.judge('luma');

select is(
  pg_temp.stored('luma', '{"id": "g1", "state": "dreaming", "request": {"prompt": "private", "callback_url": "https://us.example/callbacks/luma/tok"}}'),
  '{"id": "g1", "state": "dreaming", "request": "[redacted]"}', 'our own callback URL comes back and is not stored'
);

select finish();
rollback;
