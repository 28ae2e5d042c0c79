-- Stage 30: Synthesia's profile understands the bodies that Synthesia documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(12);

insert into example (source, body, expected, why) values
  ('poll', '{"id": "4e2b", "status": "in_progress", "callbackId": "job-1", "createdAt": 1782270000, "lastUpdatedAt": 1782270001}',
    '{"task": "4e2b", "client": "job-1", "word": "in_progress", "status": "running", "at": "2026-06-24T03:00:01Z"}', 'runs'),
  ('poll', '{"id": "4e2b", "status": "approved"}',
    '{"task": "4e2b", "word": "approved", "status": "running"}', 'approved by moderation: goes on'),
  ('poll', '{"id": "4e2b", "status": "complete", "download": "https://cdn.example/v.mp4"}',
    '{"task": "4e2b", "word": "complete", "status": "succeeded", "urls": ["https://cdn.example/v.mp4"], "lives": 3600}', 'success'),
  ('poll', '{"id": "4e2b", "status": "complete"}',
    '{"task": "4e2b", "word": "complete", "status": "succeeded"}', 'success without a download has no output'),
  ('poll', '{"id": "4e2b", "status": "error"}',
    '{"task": "4e2b", "word": "error", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure'),
  ('poll', '{"id": "4e2b", "status": "rejected"}',
    '{"task": "4e2b", "word": "rejected", "status": "failed", "class": "rejected", "code": "provider_rejected"}', 'rejected'),
  ('poll', '{"id": "4e2b", "status": "deleted"}',
    '{"task": "4e2b", "word": "deleted", "status": "failed", "class": "deleted", "code": "provider_failed"}', 'deleted'),
  ('poll', '{"id": "4e2b", "status": "completed"}',
    '{"task": "4e2b", "word": "completed"}', 'an unknown word'),
  ('webhook', '{"type": "video.completed", "data": {"id": "4e2b", "callbackId": "job-1", "status": "complete"}}',
    '{"task": "4e2b", "client": "job-1", "word": "video.completed", "status": "succeeded"}', 'a callback brings the id, and is a hint'),
  ('webhook', '{"type": "video.failed", "data": {"id": "4e2b"}}',
    '{"task": "4e2b", "word": "video.failed", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure'),
  ('webhook', '{"type": "video.archived", "data": {"id": "4e2b"}}',
    '{"task": "4e2b", "word": "video.archived"}', 'an unknown event');

select pg_temp.judge('synthesia');

select is(
  aivedio._is_thin(aivedio._profile('synthesia'), aivedio.normalise('synthesia', 'webhook', '{"type": "video.failed", "data": {"id": "1"}}')),
  true, 'its callbacks are hints'
);

select finish();
rollback;
