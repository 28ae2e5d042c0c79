-- Stage 30: Vidu's profile understands the bodies that Vidu documents.
begin;
\ir support/fixtures.sql
\ir support/examples.sql
select plan(17);

insert into example (source, body, expected, why) values
  ('poll', '{"state": "created", "err_code": "", "payload": "job-1", "creations": []}',
    '{"client": "job-1", "word": "created", "status": "queued"}', 'is created'),
  ('poll', '{"state": "queueing", "payload": "job-1"}',
    '{"client": "job-1", "word": "queueing", "status": "queued"}', 'waits'),
  ('poll', '{"state": "processing", "task_id": "7"}',
    '{"task": "7", "word": "processing", "status": "running"}', 'runs'),
  ('poll', '{"state": "success", "err_code": "", "credits": 4, "creations": [{"id": "c1", "url": "https://cdn.example/v.mp4", "cover_url": "https://cdn.example/c.jpg"}]}',
    '{"word": "success", "status": "succeeded", "urls": ["https://cdn.example/v.mp4"], "lives": 86400}', 'success'),
  ('poll', '{"state": "success", "creations": []}',
    '{"word": "success", "status": "succeeded"}', 'success without a creation has no output'),
  ('poll', '{"state": "failed", "err_code": "AuditSubmitIllegal", "creations": []}',
    '{"word": "failed", "status": "failed", "class": "content_refused", "code": "content_refused"}', 'failure for its content'),
  ('poll', '{"state": "failed", "err_code": ""}',
    '{"word": "failed", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure'),
  ('poll', '{"state": "canceled"}',
    '{"word": "canceled"}', 'how a canceled job is called is not known'),
  ('webhook', '{"state": "created", "err_code": "", "payload": "job-1", "creations": []}',
    '{"word": "created", "status": "queued"}', 'is created'),
  ('webhook', '{"state": "queueing", "payload": "job-1"}',
    '{"word": "queueing", "status": "queued"}', 'waits'),
  ('webhook', '{"state": "processing", "task_id": "7"}',
    '{"word": "processing", "status": "running"}', 'runs; an id that nobody signed is not read'),
  ('webhook', '{"state": "success", "err_code": "", "credits": 4, "creations": [{"id": "c1", "url": "https://cdn.example/v.mp4", "cover_url": "https://cdn.example/c.jpg"}]}',
    '{"word": "success", "status": "succeeded", "urls": ["https://cdn.example/v.mp4"], "lives": 86400}', 'success'),
  ('webhook', '{"state": "success", "creations": []}',
    '{"word": "success", "status": "succeeded"}', 'success without a creation has no output'),
  ('webhook', '{"state": "failed", "err_code": "AuditSubmitIllegal", "creations": []}',
    '{"word": "failed", "status": "failed", "class": "content_refused", "code": "content_refused"}', 'failure for its content'),
  ('webhook', '{"state": "failed", "err_code": ""}',
    '{"word": "failed", "status": "failed", "class": "provider_failed", "code": "provider_failed"}', 'failure'),
  ('webhook', '{"state": "canceled"}',
    '{"word": "canceled"}', 'how a canceled job is called is not known');

select pg_temp.judge('vidu');

select is(
  aivedio._answer_meaning(aivedio._profile('vidu'), 'cancel', 400, '{"message": "task state is scheduled, can not cancel"}'), 'refused',
  'a cancel that comes too late is not repeated'
);

select finish();
rollback;
