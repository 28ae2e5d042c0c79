-- Stage 30: The profile of OpenAI-like videos APIs understands the bodies that OpenAI documented.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(11);

insert into example (source, body, expected, why) values
  ('poll', '{"id": "video_1", "object": "video", "model": "sora-2", "status": "queued", "progress": 0, "created_at": 1782270000}',
    '{"task": "video_1", "word": "queued", "status": "queued", "progress": 0}', 'waits'),
  ('poll', '{"id": "video_1", "status": "in_progress", "progress": 40, "seconds": "8", "error": null}',
    '{"task": "video_1", "word": "in_progress", "status": "running", "progress": 40}', 'runs'),
  ('poll', '{"id": "video_1", "status": "completed", "progress": 100, "completed_at": 1782270100, "expires_at": 1782273700}',
    '{"task": "video_1", "word": "completed", "status": "succeeded", "at": "2026-06-24T03:01:40Z", "urls": ["https://openai-videos.invalid/v1/videos/video_1/content"], "lives": 3600}', 'success: the output is at the API itself'),
  ('poll', '{"id": "video/../1", "status": "completed"}',
    '{"task": "video/../1", "word": "completed", "status": "succeeded", "urls": ["https://openai-videos.invalid/v1/videos/video%2F..%2F1/content"], "lives": 3600}', 'an odd id stays in its place'),
  ('poll', '{"id": "video_1", "status": "failed", "error": {"code": "moderation_blocked", "message": "no"}}',
    '{"task": "video_1", "word": "failed", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "no"}', 'failure for its content'),
  ('poll', '{"id": "video_1", "status": "failed", "error": null}',
    '{"task": "video_1", "word": "failed", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure'),
  ('poll', '{"id": "video_1", "status": "expired"}',
    '{"task": "video_1", "word": "expired"}', 'an unknown word'),
  ('webhook', '{"id": "evt_1", "object": "event", "created_at": 1782270100, "type": "video.completed", "data": {"id": "video_1"}}',
    '{"task": "video_1", "word": "video.completed", "status": "succeeded", "at": "2026-06-24T03:01:40Z"}', 'a callback brings the id, and is a hint'),
  ('webhook', '{"id": "evt_2", "type": "video.failed", "data": {"id": "video_1"}}',
    '{"task": "video_1", "word": "video.failed", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure'),
  ('webhook', '{"id": "evt_3", "type": "batch.completed", "data": {"id": "batch_1"}}',
    '{"task": "batch_1", "word": "batch.completed"}', 'another event');

select pg_temp.judge('openai_videos');

select is(
  aivedio._is_thin(aivedio._profile('openai_videos'), aivedio.normalise('openai_videos', 'webhook', '{"type": "video.failed", "data": {"id": "1"}}')),
  true, 'its callbacks are hints'
);

select finish();
rollback;
