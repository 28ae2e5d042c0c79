-- Stage 20: what the answer to a submission means where the status line does not tell all.
begin;
\ir support/fixtures.sql
select plan(30);

-- Accepted, rejected, again or unknown, with the class of the error.
create function pg_temp.submitted(p_provider text, p_status integer, p_body jsonb)
returns text
language sql
as $submitted$
  select concat_ws(' ', answer.meaning, answer.provider_task_id, answer.error_class, answer.error_code)
  from aivedio._read_submit(
    aivedio._profile(p_provider), jsonb_build_object('kind', 'response', 'http_status', p_status, 'body', p_body)
  ) as answer;
$submitted$;

select is(pg_temp.submitted(given.provider, given.status, given.body), given.expected, format('%s, %s: %s', given.provider, given.status, given.expected))
from (values
  ('fal', 200, '{"request_id": "r1", "status_url": "https://queue.fal.run/x"}'::jsonb, 'accepted r1'),
  ('fal', 422, '{"detail": [{"msg": "field required"}]}', 'rejected invalid_input provider_rejected'),
  ('fal', 500, '{"detail": "boom"}', 'unknown'),
  ('runway', 200, '{"id": "t1", "estimatedCost": {"credits": 5}}', 'accepted t1'),
  ('runway', 429, '{"error": "daily"}', 'again throttled provider_busy'),
  ('luma', 201, '{"id": "g1", "state": "queued"}', 'accepted g1'),
  ('kling', 200, '{"code": 0, "data": {"id": "1", "status": "submitted"}}', 'accepted 1'),
  ('kling', 200, '{"code": 0, "data": {}}', 'unknown'),
  ('kling', 200, '{"code": 1303, "message": "parallel task over resource pack limit"}', 'again throttled provider_busy'),
  ('kling', 200, '{"code": 1201, "message": "invalid prompt"}', 'rejected invalid_input provider_rejected'),
  ('kling_legacy', 200, '{"code": 0, "data": {"task_id": "1"}}', 'accepted 1'),
  ('minimax', 200, '{"task_id": "1", "base_resp": {"status_code": 0}}', 'accepted 1'),
  ('minimax', 200, '{"task_id": "", "base_resp": {"status_code": 0}}', 'unknown'),
  ('minimax', 200, '{"base_resp": {"status_code": 2049, "status_msg": "invalid key"}}', 'again credential_refused provider_unreachable'),
  ('minimax', 500, '{"base_resp": {"status_code": 1002}}', 'again throttled provider_busy'),
  ('vidu', 200, '{"task_id": "1", "state": "created"}', 'accepted 1'),
  ('dashscope', 200, '{"output": {"task_id": "t1", "task_status": "PENDING"}}', 'accepted t1'),
  ('dashscope', 400, '{"code": "DataInspectionFailed", "message": "no"}', 'rejected content_refused content_refused'),
  ('seedance', 200, '{"id": "cgt-1"}', 'accepted cgt-1'),
  ('veo', 200, '{"name": "models/veo/operations/o1"}', 'accepted models/veo/operations/o1'),
  ('heygen', 200, '{"data": {"video_id": "v1", "status": "waiting"}}', 'accepted v1'),
  ('synthesia', 201, '{"id": "4e2b"}', 'accepted 4e2b'),
  ('did', 201, '{"id": "tlk_1", "status": "created"}', 'accepted tlk_1'),
  ('openai_videos', 200, '{"id": "video_1", "status": "queued"}', 'accepted video_1'),
  ('mux', 201, '{"data": {"id": "a1", "status": "preparing"}}', 'accepted a1'),
  ('mux', 302, '{"data": {"id": "a1"}}', 'unknown')
) as given (provider, status, body, expected);

-- A provider whose secret is not set: tried again a few times, then the task fails, and somebody is told at once.
create function pg_temp.tried()
returns text
language sql
as $tried$
  select set_config('aivedio.now', (aivedio._clock() + interval '2 minutes')::text, true);
  select (aivedio.settle_submit(request.attempt_id, request.lease_token, '{"kind": "not_sent", "error": "NoSecret"}')).status
  from aivedio.claim_submits('worker', 1, 'https://us.example') as request;
$tried$;

select aivedio.create_task(fixture.id('tenant'), fixture.project(), fixture.id('user'), 'fal', 'fal-ai/veo3', '{"prompt": "x"}') \gset
select is(pg_temp.tried(), 'submitting', 'without its secret a submission waits');
select results_eq(
  $$ select kind, subject from aivedio.alarms $$, $$ values ('provider_not_configured', 'fal:default') $$, 'and somebody is told which provider'
);
select pg_temp.tried();
select pg_temp.tried();
select pg_temp.tried();
select is(pg_temp.tried(), 'failed', 'after five tries the task fails');
select results_eq(
  $$ select error_class, error_code, error_detail from aivedio.task_attempts $$,
  $$ values ('not_configured', 'provider_unreachable', 'its secret is missing or unusable where submissions are made; the profile names env:FAL_KEY') $$,
  'its attempt says what to set'
);

select finish();
rollback;
