-- Stage 30: Runway's profile understands the bodies that Runway documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(15);

insert into example (source, body, expected, why) values
  ('poll', '{"id": "t1", "status": "PENDING", "createdAt": "2026-06-24T03:00:00Z"}',
    '{"task": "t1", "word": "PENDING", "status": "queued"}', 'waits'),
  ('poll', '{"id": "t1", "status": "THROTTLED", "createdAt": "2026-06-24T03:00:00Z"}',
    '{"task": "t1", "word": "THROTTLED", "status": "queued"}', 'throttled is waiting, not failing'),
  ('poll', '{"id": "t1", "status": "RUNNING", "createdAt": "2026-06-24T03:00:00Z", "progress": 0.42, "estimatedCost": {"credits": 25}}',
    '{"task": "t1", "word": "RUNNING", "status": "running", "progress": 42}', 'progress is a share of one'),
  ('poll', '{"id": "t1", "status": "RUNNING", "progress": 1.0}',
    '{"task": "t1", "word": "RUNNING", "status": "running", "progress": 100}', 'the whole'),
  ('poll', '{"id": "t1", "status": "RUNNING", "progress": 1.7}',
    '{"task": "t1", "word": "RUNNING", "status": "running", "progress": 100}', 'more than the whole is cut'),
  ('poll', '{"id": "t1", "status": "RUNNING"}',
    '{"task": "t1", "word": "RUNNING", "status": "running"}', 'no progress yet'),
  ('poll', '{"id": "t1", "status": "SUCCEEDED", "output": ["https://dnznrvs05pmza.cloudfront.net/a.mp4?_jwt=x"], "cost": {"credits": 25}}',
    '{"task": "t1", "word": "SUCCEEDED", "status": "succeeded", "urls": ["https://dnznrvs05pmza.cloudfront.net/a.mp4?_jwt=x"], "lives": 86400}', 'success'),
  ('poll', '{"id": "t1", "status": "SUCCEEDED", "output": []}',
    '{"task": "t1", "word": "SUCCEEDED", "status": "succeeded"}', 'a success without an output has none'),
  ('poll', '{"id": "t1", "status": "FAILED", "failure": "An unexpected error occurred.", "failureCode": "INTERNAL.BAD_OUTPUT.CODE01"}',
    '{"task": "t1", "word": "FAILED", "status": "failed", "class": "provider_failed", "code": "provider_failed", "detail": "An unexpected error occurred."}', 'failure'),
  ('poll', '{"id": "t1", "status": "FAILED", "failure": "Content moderation", "failureCode": "SAFETY.INPUT.TEXT"}',
    '{"task": "t1", "word": "FAILED", "status": "failed", "class": "content_refused", "code": "content_refused", "detail": "Content moderation"}', 'failure for its content'),
  ('poll', '{"id": "t1", "status": "FAILED", "failure": null}',
    '{"task": "t1", "word": "FAILED", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure without a word'),
  ('poll', '{"id": "t1", "status": "CANCELLED"}',
    '{"task": "t1", "word": "CANCELLED", "status": "canceled", "class": "canceled", "code": "canceled_by_provider"}', 'canceled, with two l'),
  ('poll', '{"id": "t1", "status": "CANCELED"}',
    '{"task": "t1", "word": "CANCELED"}', 'with one l it is another word'),
  ('poll', '{"id": "t1", "status": "PAUSED"}',
    '{"task": "t1", "word": "PAUSED"}', 'an unknown word');
insert into example (source, http, body, expected, why) values
  ('poll', '{"status": 404, "means": "canceled"}', '{"error": "Not found"}',
    '{"status": "canceled", "class": "canceled", "code": "canceled_by_provider"}', 'gone after our own cancel');

select pg_temp.judge('runway');

select finish();
rollback;
