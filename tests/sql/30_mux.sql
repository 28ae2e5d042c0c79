-- Stage 30: Mux's profile understands the bodies that Mux documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(13);

insert into example (source, body, expected, why) values
  ('poll', '{"data": {"id": "a1", "status": "preparing", "passthrough": "job-1", "progress": {"state": "transcoding", "progress": 37.5}}}',
    '{"task": "a1", "client": "job-1", "word": "preparing", "status": "running", "progress": 37}', 'is transcoded'),
  ('poll', '{"data": {"id": "a1", "status": "preparing", "progress": {"state": "ingesting", "progress": -1}}}',
    '{"task": "a1", "word": "preparing", "status": "running"}', 'progress that is not known'),
  ('poll', '{"data": {"id": "a1", "status": "ready", "passthrough": "job-1", "progress": {"state": "completed", "progress": 100}, "playback_ids": [{"id": "p1", "policy": "public"}, {"id": "p2", "policy": "signed"}]}}',
    '{"task": "a1", "client": "job-1", "word": "ready", "status": "succeeded", "urls": ["https://stream.mux.com/p1.m3u8", "https://stream.mux.com/p2.m3u8"], "lives": 31536000}', 'ready: a stream for each playback id'),
  ('poll', '{"data": {"id": "a1", "status": "ready"}}',
    '{"task": "a1", "word": "ready", "status": "succeeded"}', 'ready, and nobody may play it'),
  ('poll', '{"data": {"id": "a1", "status": "errored", "progress": {"state": "errored", "progress": -1}, "errors": {"type": "invalid_input", "messages": ["The input is not a video"]}}}',
    '{"task": "a1", "word": "errored", "status": "failed", "class": "invalid_input", "code": "provider_rejected", "detail": "The input is not a video"}', 'the input is at fault'),
  ('poll', '{"data": {"id": "a1", "status": "errored"}}',
    '{"task": "a1", "word": "errored", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure'),
  ('poll', '{"data": {"id": "a1", "status": "waiting"}}',
    '{"task": "a1", "word": "waiting"}', 'an unknown word'),
  ('webhook', '{"type": "video.asset.created", "id": "e1", "created_at": "2026-06-24T03:00:00.000000Z", "object": {"type": "asset", "id": "a1"}, "environment": {"id": "n1"}, "data": {"id": "a1", "status": "preparing", "passthrough": "job-1"}, "attempts": []}',
    '{"task": "a1", "client": "job-1", "word": "preparing", "status": "running", "at": "2026-06-24T03:00:00Z"}', 'begins'),
  ('webhook', '{"type": "video.asset.ready", "id": "e1", "created_at": "2026-06-24T03:00:00.000000Z", "object": {"type": "asset", "id": "a1"}, "environment": {"id": "n1"}, "data": {"id": "a1", "status": "ready", "passthrough": "job-1", "playback_ids": [{"id": "p1"}]}, "attempts": []}',
    '{"task": "a1", "client": "job-1", "word": "ready", "status": "succeeded", "at": "2026-06-24T03:00:00Z", "urls": ["https://stream.mux.com/p1.m3u8"], "lives": 31536000}', 'ready'),
  ('webhook', '{"type": "video.asset.updated", "id": "e1", "created_at": "2026-06-24T03:00:00.000000Z", "object": {"type": "asset", "id": "a1"}, "environment": {"id": "n1"}, "data": {"id": "a1", "status": "ready", "passthrough": "job-1"}, "attempts": []}',
    '{"task": "a1", "client": "job-1", "word": "ready", "status": "succeeded", "at": "2026-06-24T03:00:00Z"}', 'a change after that says the same again'),
  ('webhook', '{"type": "video.asset.errored", "id": "e1", "created_at": "2026-06-24T03:00:00.000000Z", "object": {"type": "asset", "id": "a1"}, "environment": {"id": "n1"}, "data": {"id": "a1", "status": "errored", "passthrough": "job-1", "errors": {"type": "server_error", "messages": ["boom"]}}, "attempts": []}',
    '{"task": "a1", "client": "job-1", "word": "errored", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "boom", "at": "2026-06-24T03:00:00Z"}', 'failure'),
  ('webhook', '{"type": "video.asset.track.ready", "id": "e1", "created_at": "2026-06-24T03:00:00.000000Z", "object": {"type": "track", "id": "a1"}, "environment": {"id": "n1"}, "data": {"id": "t1", "status": "ready", "passthrough": "job-1"}, "attempts": []}',
    '{"at": "2026-06-24T03:00:00Z"}', 'a track that is ready is no asset');

select pg_temp.judge('mux');

select is(
  pg_temp.kept('mux', '{"type": "video.asset.ready", "data": {"id": "a1", "playback_ids": [{"id": "p1"}]}}'),
  '{"type": "video.asset.ready", "data": {"id": "a1", "playback_ids": "[redacted]"}}', 'the outputs of an applied callback are not kept'
);

select finish();
rollback;
