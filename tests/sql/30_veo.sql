-- Stage 30: Veo's profile understands the operations that the Gemini API documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(14);

insert into example (source, body, expected, why) values
  ('poll', '{"name": "models/veo/operations/o1"}',
    '{"task": "models/veo/operations/o1", "word": "not done", "status": "running"}', 'without "done" it runs'),
  ('poll', '{"name": "models/veo/operations/o1", "done": false}',
    '{"task": "models/veo/operations/o1", "word": "not done", "status": "running"}', 'nor is it done'),
  ('poll', '{"name": "models/veo/operations/o1", "done": true, "response": {"generateVideoResponse": {"generatedSamples": [{"video": {"uri": "https://g.example/v:download?alt=media"}}]}}}',
    '{"task": "models/veo/operations/o1", "word": "done", "status": "succeeded", "urls": ["https://g.example/v:download?alt=media"], "lives": 172800}', 'success'),
  ('poll', '{"name": "models/veo/operations/o1", "done": true, "response": {"generateVideoResponse": {"generatedSamples": [{"video": {"uri": "https://g.example/1"}}, {"video": {"uri": "https://g.example/2"}}], "raiMediaFilteredCount": 1}}}',
    '{"task": "models/veo/operations/o1", "word": "done", "status": "succeeded", "urls": ["https://g.example/1", "https://g.example/2"], "lives": 172800}', 'success, although one sample was filtered'),
  ('poll', '{"name": "models/veo/operations/o1", "done": true, "response": {"generateVideoResponse": {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": ["We could not make this one."]}}}',
    '{"task": "models/veo/operations/o1", "word": "done", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "We could not make this one."}', 'done without samples: filtered'),
  ('poll', '{"name": "models/veo/operations/o1", "done": true, "response": {"generateVideoResponse": {"raiMediaFilteredCount": 2, "generatedSamples": []}}}',
    '{"task": "models/veo/operations/o1", "word": "done", "status": "failed", "class": "content_refused", "code": "content_refused"}', 'filtered, without a reason'),
  ('poll', '{"name": "models/veo/operations/o1", "done": true, "response": {"generateVideoResponse": {}}}',
    '{"task": "models/veo/operations/o1", "word": "done", "status": "failed", "class": "no_output", "code": "provider_failed"}', 'done with nothing'),
  ('poll', '{"name": "models/veo/operations/o1", "done": true, "error": {"code": 13, "message": "internal"}}',
    '{"task": "models/veo/operations/o1", "word": "done with an error", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "internal"}', 'failure'),
  ('poll', '{"name": "models/veo/operations/o1", "done": true, "error": {"code": 3, "message": "The prompt violates our policies"}}',
    '{"task": "models/veo/operations/o1", "word": "done with an error", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "The prompt violates our policies"}', 'failure for its content'),
  ('poll', '{"name": "models/veo/operations/o1", "done": true}',
    '{"task": "models/veo/operations/o1"}', 'done with neither is not understood'),
  ('poll', '{"error": {"code": 404, "message": "no"}}',
    '{}', 'an error without an operation is none of it'),
  ('webhook', '{"type": "video.generated", "version": "v1", "timestamp": "2026-06-24T03:00:00Z", "data": {"id": "o1", "output_file_uri": "https://g.example/v", "file_name": "files/1"}}',
    '{"word": "video.generated", "status": "succeeded"}', 'a callback names a success, and is a hint: it brings neither id nor output'),
  ('webhook', '{"type": "batch.succeeded", "data": {"id": "b1"}}',
    '{"word": "batch.succeeded"}', 'other events are unknown words');

select pg_temp.judge('veo');

select is(
  aivedio._is_thin(aivedio._profile('veo'), aivedio.normalise('veo', 'webhook', '{"type": "video.generated"}')), true, 'its callbacks are hints'
);

select finish();
rollback;
