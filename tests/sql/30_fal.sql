-- Stage 30: fal's profile understands the bodies that fal documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(37);

insert into example (source, body, expected, why) values
  ('poll', '{"status": "IN_QUEUE", "request_id": "r1", "queue_position": 0, "response_url": "https://queue.fal.run/fal-ai/m/requests/r1"}',
    '{"task": "r1", "word": "IN_QUEUE", "status": "queued"}', 'waits'),
  ('poll', '{"status": "IN_PROGRESS", "request_id": "r1", "logs": null}',
    '{"task": "r1", "word": "IN_PROGRESS", "status": "running"}', 'runs'),
  ('poll', '{"status": "COMPLETED", "request_id": "r1", "logs": null, "metrics": {"inference_time": 17.8}, "error": "took too long", "error_type": "request_timeout"}',
    '{"task": "r1", "word": "COMPLETED", "status": "failed", "class": "provider_timeout", "code": "timed_out", "detail": "took too long"}', 'COMPLETED with an error is a failure'),
  ('poll', '{"status": "COMPLETED", "request_id": "r1", "error": {"message": "boom"}}',
    '{"task": "r1", "word": "COMPLETED", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "{\"message\": \"boom\"}"}', 'whatever shape it has'),
  ('poll', '{"status": "COMPLETED", "request_id": "r1", "error_type": "runner_crash"}',
    '{"task": "r1", "word": "COMPLETED", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'an error''s type alone is one, too'),
  ('poll', '{"status": "COMPLETED", "request_id": "r1", "error": null, "payload": {"video": {"url": "https://v3.fal.media/o.mp4", "content_type": "video/mp4"}, "seed": 7}}',
    '{"task": "r1", "word": "COMPLETED", "status": "succeeded", "urls": ["https://v3.fal.media/o.mp4"], "lives": 3600}', 'with its result, as the second request brings it'),
  ('poll', '{"status": "COMPLETED", "request_id": "r1", "payload": {"videos": [{"url": "https://v3.fal.media/1.mp4"}, {"url": "https://v3.fal.media/2.mp4"}]}}',
    '{"task": "r1", "word": "COMPLETED", "status": "succeeded", "urls": ["https://v3.fal.media/1.mp4", "https://v3.fal.media/2.mp4"], "lives": 3600}', 'several videos'),
  ('poll', '{"status": "COMPLETED", "request_id": "r1", "payload": {"images": [{"url": "https://v3.fal.media/1.png"}], "video": {"url": "https://v3.fal.media/1.mp4"}}}',
    '{"task": "r1", "word": "COMPLETED", "status": "succeeded", "urls": ["https://v3.fal.media/1.mp4", "https://v3.fal.media/1.png"], "kinds": ["image", "video"], "lives": 3600}', 'a video first, then images'),
  ('poll', '{"status": "COMPLETED", "request_id": "r1", "payload": {"image": {"url": "https://v3.fal.media/1.png"}, "audio": {"url": "https://v3.fal.media/1.mp3"}}}',
    '{"task": "r1", "word": "COMPLETED", "status": "succeeded", "urls": ["https://v3.fal.media/1.png", "https://v3.fal.media/1.mp3"], "kinds": ["audio", "image"], "lives": 3600}', 'an image and a sound'),
  ('webhook', '{"request_id": "r1", "status": "ERROR", "payload": null, "payload_error": "too large"}',
    '{"task": "r1", "word": "ERROR", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "too large"}', 'an error of the payload alone'),
  ('poll', '{"status": "COMPLETED", "request_id": "r1", "payload": {"text": "a cat"}}',
    '{"task": "r1", "word": "COMPLETED", "status": "succeeded"}', 'an unknown shape has no outputs'),
  ('poll', '{"status": "FAILED", "request_id": "r1"}', '{"task": "r1", "word": "FAILED"}', 'fal has no such word'),
  ('poll', '{"status": "completed", "request_id": "r1"}', '{"task": "r1", "word": "completed"}', 'words are case-sensitive'),
  ('poll', '{"status": "OK", "request_id": "r1"}', '{"task": "r1", "word": "OK"}', 'a callback''s word is none of a poll''s'),
  ('webhook', '{"request_id": "r1", "gateway_request_id": "g2", "status": "OK", "payload": {"video": {"url": "https://v3.fal.media/o.mp4"}}}',
    '{"task": "r1", "word": "OK", "status": "succeeded", "urls": ["https://v3.fal.media/o.mp4"], "lives": 3600}', 'success, under request_id'),
  ('webhook', '{"request_id": "r1", "gateway_request_id": "g1", "status": "OK", "payload": null, "payload_error": "result is not JSON"}',
    '{"task": "r1", "word": "OK", "status": "succeeded"}', 'a result that cannot be sent has no outputs: a hint'),
  ('webhook', '{"request_id": "r1", "gateway_request_id": "g1", "status": "ERROR", "error": "Invalid status code: 422", "payload": {"detail": [{"loc": ["body", "prompt"], "msg": "field required", "type": "value_error.missing"}]}}',
    '{"task": "r1", "word": "ERROR", "status": "failed", "class": "invalid_input", "code": "provider_rejected", "detail": "field required"}', 'failure, told in detail'),
  ('webhook', '{"request_id": "r1", "status": "ERROR", "error": "Invalid status code: 422", "payload": {"detail": [{"msg": "The prompt could not be used", "type": "content_policy_violation"}]}}',
    '{"task": "r1", "word": "ERROR", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "The prompt could not be used"}', 'failure for its content'),
  ('webhook', '{"request_id": "r1", "status": "COMPLETED"}', '{"task": "r1", "word": "COMPLETED"}', 'a poll''s word is none of a callback''s');
insert into example (source, http, body, expected, why) values
  ('poll', '{"status": 202}', '{"status": "IN_QUEUE", "request_id": "r1", "queue_position": 3}', '{"task": "r1", "word": "IN_QUEUE", "status": "queued"}', '202 is how fal says "not yet"'),
  ('poll', '{"status": 422, "means": "failed"}', '{"status": "COMPLETED", "request_id": "r1", "payload": {"detail": [{"msg": "Invalid input: no face found"}]}}',
    '{"task": "r1", "word": "COMPLETED", "status": "failed", "class": "invalid_input", "code": "provider_rejected", "detail": "Invalid input: no face found"}', 'a refused result is a failure, with fal''s own words'),
  ('poll', '{"status": 400, "means": "failed"}', '{"status": "COMPLETED", "request_id": "r1", "payload": {"detail": "bad"}}',
    '{"task": "r1", "word": "COMPLETED", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "bad"}', 'also with a text');

select pg_temp.judge('fal');

-- The status of the result's own request.
select is(aivedio._http_meaning(aivedio._profile('fal'), 'poll.then', given.status), given.meaning, format('a result with %s: %s', given.status, given.meaning))
from (values (200, 'body'), (422, 'failed'), (400, 'failed'), (404, 'not_found'), (429, 'throttled'), (504, 'retry')) as given (status, meaning);

-- When the result is asked for.
select is(
  coalesce(jsonb_path_match(given.body, (aivedio._profile('fal') #>> '{poll,then,when}')::jsonpath), false), given.asked,
  format('%s: %s', given.body, case when given.asked then 'the result is asked for' else 'no result' end)
)
from (values
  ('{"status": "COMPLETED"}'::jsonb, true),
  ('{"status": "COMPLETED", "error": null, "error_type": null}', true),
  ('{"status": "COMPLETED", "error": ""}', true),
  ('{"status": "COMPLETED", "error": "boom"}', false),
  ('{"status": "COMPLETED", "error": {"message": "boom"}}', false),
  ('{"status": "IN_PROGRESS"}', false)
) as given (body, asked);

select is(
  pg_temp.kept('fal', '{"request_id": "r1", "status": "OK", "payload": {"video": {"url": "https://v3.fal.media/o.mp4"}, "prompt": "private"}}'),
  '{"request_id": "r1", "status": "OK", "payload": "[redacted]"}', 'of an applied callback nothing of the result is kept'
);
select is(
  (aivedio._answer_meaning(aivedio._profile('fal'), 'cancel', 404, '{"status": "NOT_FOUND"}')), 'refused', 'nor one of a request that is gone'
);
select is(
  (aivedio._answer_meaning(aivedio._profile('fal'), 'cancel', 400, '{"status": "ALREADY_COMPLETED"}')), 'refused', 'a cancel that comes too late is not repeated'
);

select finish();
rollback;
