-- Stage 30: HeyGen's profile understands the bodies that HeyGen documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(15);

insert into example (source, body, expected, why) values
  ('poll', '{"data": {"id": "v1", "status": "waiting"}}',
    '{"task": "v1", "word": "waiting", "status": "queued"}', 'waits, as the creation says'),
  ('poll', '{"data": {"id": "v1", "status": "pending", "created_at": 1782270000, "completed_at": null}}',
    '{"task": "v1", "word": "pending", "status": "queued"}', 'waits'),
  ('poll', '{"data": {"id": "v1", "status": "queued"}}',
    '{"task": "v1", "word": "queued", "status": "queued"}', 'waits, as the list says'),
  ('poll', '{"data": {"id": "v1", "status": "processing"}}',
    '{"task": "v1", "word": "processing", "status": "running"}', 'runs'),
  ('poll', '{"data": {"id": "v1", "status": "completed", "video_url": "https://cdn.example/v.mp4", "completed_at": 1782270100}}',
    '{"task": "v1", "word": "completed", "status": "succeeded", "at": "2026-06-24T03:01:40Z", "urls": ["https://cdn.example/v.mp4"], "lives": 3600}', 'success'),
  ('poll', '{"data": {"id": "v1", "status": "completed", "video_url": null}}',
    '{"task": "v1", "word": "completed", "status": "succeeded"}', 'success without a video has no output'),
  ('poll', '{"data": {"id": "v1", "status": "failed", "failure_code": "MODERATION_ERROR", "failure_message": "no", "video_url": null}}',
    '{"task": "v1", "word": "failed", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "no"}', 'failure for its content'),
  ('poll', '{"data": {"id": "v1", "status": "failed", "failure_code": "RENDER", "failure_message": "boom"}}',
    '{"task": "v1", "word": "failed", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "boom"}', 'failure'),
  ('poll', '{"data": {"id": "v1", "status": "not_found"}}',
    '{"task": "v1", "word": "not_found"}', 'a word of the list that is no status'),
  ('webhook', '{"event_type": "avatar_video.success", "event_data": {"video_id": "v1", "url": "https://cdn.example/v.mp4", "callback_id": "job-1"}}',
    '{"task": "v1", "client": "job-1", "word": "avatar_video.success", "status": "succeeded", "urls": ["https://cdn.example/v.mp4"], "lives": 3600}', 'success'),
  ('webhook', '{"event_type": "avatar_video.fail", "event_data": {"video_id": "v1", "callback_id": "job-1", "msg": "boom"}}',
    '{"task": "v1", "client": "job-1", "word": "avatar_video.fail", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure'),
  ('webhook', '{"event_type": "avatar_video_gif.success", "event_data": {"video_id": "v1", "gif_url": "https://cdn.example/v.gif"}}',
    '{"task": "v1", "word": "avatar_video_gif.success"}', 'an event that nobody subscribed to says nothing'),
  ('webhook', '{"event_type": "completed", "event_data": {"video_id": "v1"}}',
    '{"task": "v1", "word": "completed"}', 'a poll''s word is none of a callback''s');

select pg_temp.judge('heygen');

select is(
  (aivedio._read_submit(aivedio._profile('heygen'), '{"kind": "response", "http_status": 409, "body": {"error": {"code": "request_in_progress"}}}')).meaning,
  'unknown', 'a submission that is under way already is not known to be accepted'
);
select is(
  pg_temp.kept('heygen', '{"event_type": "avatar_video.success", "event_data": {"video_id": "v1", "url": "https://cdn.example/v.mp4"}}'),
  '{"event_type": "avatar_video.success", "event_data": {"video_id": "v1", "url": "[redacted]"}}', 'the output of an applied callback is not kept'
);

select finish();
rollback;
