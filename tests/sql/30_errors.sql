-- Stage 30: what a provider says about a failure becomes our class and public code, and a success must show what it made.
begin;
\ir support/fixtures.sql

create temporary table sample (provider text, said text, class text, code text);
insert into sample values
  ('replicate', 'NSFW content detected', 'content_refused', 'content_refused'),
  ('replicate', 'Prediction timed out', 'provider_timeout', 'timed_out'),
  ('replicate', 'Too many requests', 'provider_busy', 'provider_busy'),
  ('replicate', 'Input validation failed', 'invalid_input', 'provider_rejected'),
  ('fal', 'content_policy_violation', 'content_refused', 'content_refused'),
  ('fal', 'request_timeout the request took too long', 'provider_timeout', 'timed_out'),
  ('fal', 'rate limit exceeded', 'provider_busy', 'provider_busy'),
  ('fal', 'value_error.missing field required', 'invalid_input', 'provider_rejected'),
  ('runway', 'SAFETY.INPUT.TEXT', 'content_refused', 'content_refused'),
  ('runway', 'task timed out', 'provider_timeout', 'timed_out'),
  ('runway', 'You have hit your daily limit', 'provider_busy', 'provider_busy'),
  ('runway', 'Validation of body failed', 'invalid_input', 'provider_rejected'),
  ('luma', 'did not pass moderation', 'content_refused', 'content_refused'),
  ('luma', 'timed out', 'provider_timeout', 'timed_out'),
  ('luma', 'Rate limit exceeded', 'provider_busy', 'provider_busy'),
  ('luma', 'Invalid keyframe', 'invalid_input', 'provider_rejected'),
  ('kling', 'Failure to pass the risk control system', 'content_refused', 'content_refused'),
  ('kling', 'generation timed out', 'provider_timeout', 'timed_out'),
  ('kling', '1303 parallel task over resource pack limit', 'provider_busy', 'provider_busy'),
  ('kling', '1102 Account balance not enough', 'provider_busy', 'provider_busy'),
  ('kling', '1201 Request parameter error', 'invalid_input', 'provider_rejected'),
  ('kling_legacy', 'sensitive content', 'content_refused', 'content_refused'),
  ('kling_legacy', 'generation timed out', 'provider_timeout', 'timed_out'),
  ('kling_legacy', '1303 too many', 'provider_busy', 'provider_busy'),
  ('kling_legacy', 'invalid image', 'invalid_input', 'provider_rejected'),
  ('minimax', '1026 new_sensitive', 'content_refused', 'content_refused'),
  ('minimax', '1027', 'content_refused', 'content_refused'),
  ('minimax', '10270 something else', 'provider_failed', 'provider_failed'),
  ('minimax', '1002 rate limit', 'provider_busy', 'provider_busy'),
  ('minimax', '1008 insufficient balance', 'no_balance', 'provider_busy'),
  ('minimax', '2013', 'invalid_input', 'provider_rejected'),
  ('minimax', 'timed out', 'provider_timeout', 'timed_out'),
  ('vidu', 'AuditSubmitIllegal', 'content_refused', 'content_refused'),
  ('vidu', 'TimedOut: timed out', 'provider_timeout', 'timed_out'),
  ('vidu', 'CreditInsufficient', 'provider_busy', 'provider_busy'),
  ('vidu', 'InvalidArgument', 'invalid_input', 'provider_rejected'),
  ('dashscope', 'DataInspectionFailed', 'content_refused', 'content_refused'),
  ('dashscope', 'InternalError.Timeout timed out', 'provider_timeout', 'timed_out'),
  ('dashscope', 'Throttling.RateQuota', 'provider_busy', 'provider_busy'),
  ('dashscope', 'InvalidParameter size', 'invalid_input', 'provider_rejected'),
  ('seedance', 'OutputVideoSensitiveContentDetected', 'content_refused', 'content_refused'),
  ('seedance', 'expired', 'provider_timeout', 'timed_out'),
  ('seedance', 'RateLimitExceeded.EndpointRPMExceeded', 'provider_busy', 'provider_busy'),
  ('seedance', 'InvalidParameter ratio', 'invalid_input', 'provider_rejected'),
  ('veo', 'The prompt violates our policies', 'content_refused', 'content_refused'),
  ('veo', '4 DEADLINE_EXCEEDED', 'provider_timeout', 'timed_out'),
  ('veo', '8 RESOURCE_EXHAUSTED', 'provider_busy', 'provider_busy'),
  ('veo', 'INVALID_ARGUMENT aspect ratio', 'invalid_input', 'provider_rejected'),
  ('heygen', 'MODERATION_ERROR', 'content_refused', 'content_refused'),
  ('heygen', 'render timed out', 'provider_timeout', 'timed_out'),
  ('heygen', 'insufficient credit', 'provider_busy', 'provider_busy'),
  ('heygen', 'invalid avatar', 'invalid_input', 'provider_rejected'),
  ('synthesia', 'rejected', 'rejected', 'provider_rejected'),
  ('synthesia', 'deleted', 'deleted', 'provider_failed'),
  ('synthesia', 'quota exceeded', 'provider_busy', 'provider_busy'),
  ('synthesia', 'validation failed', 'invalid_input', 'provider_rejected'),
  ('did', 'CelebrityModeration', 'content_refused', 'content_refused'),
  ('did', 'timed out', 'provider_timeout', 'timed_out'),
  ('did', 'InsufficientCreditsError', 'provider_busy', 'provider_busy'),
  ('did', 'BadRequestError', 'invalid_input', 'provider_rejected'),
  ('openai_videos', 'moderation_blocked', 'content_refused', 'content_refused'),
  ('openai_videos', 'timed out', 'provider_timeout', 'timed_out'),
  ('openai_videos', 'rate_limit_exceeded', 'provider_busy', 'provider_busy'),
  ('openai_videos', 'invalid_value seconds', 'invalid_input', 'provider_rejected'),
  ('mux', 'invalid_input the file is corrupt', 'invalid_input', 'provider_rejected'),
  ('mux', 'download timed out', 'provider_timeout', 'timed_out'),
  ('mux', 'Too many requests', 'provider_busy', 'provider_busy');
insert into sample
select provider.name, 'CUDA out of memory', 'provider_failed', 'provider_failed' from aivedio.providers as provider;

-- A success without its result, as each provider would say it: what comes of a poll that brings it.
create temporary table bare (provider text, body jsonb);
insert into bare values
  ('replicate', '{"id": "1", "status": "succeeded", "output": null}'),
  ('runway', '{"status": "SUCCEEDED", "output": []}'),
  ('luma', '{"state": "completed", "assets": {}}'),
  ('kling', '{"code": 0, "data": [{"status": "succeeded"}]}'),
  ('kling_legacy', '{"code": 0, "data": {"task_status": "succeed"}}'),
  ('minimax', '{"status": "Success", "file_id": ""}'),
  ('vidu', '{"state": "success", "creations": []}'),
  ('dashscope', '{"output": {"task_status": "SUCCEEDED"}}'),
  ('seedance', '{"status": "succeeded", "content": {}}'),
  ('heygen', '{"data": {"status": "completed", "video_url": null}}'),
  ('synthesia', '{"status": "complete"}'),
  ('did', '{"status": "done", "result_url": null}'),
  ('openai_videos', '{"status": "completed"}');

select plan((select count(*)::integer from sample) + (select count(*)::integer from bare) + 4);

select is(
  aivedio._map_error(aivedio._profile(sample.provider), sample.said, 'provider_failed', 'provider_failed')::text,
  format('(%s,%s)', sample.class, sample.code), format('%s says "%s"', sample.provider, sample.said)
)
from sample
order by sample.provider, sample.said;

select fixture.task();
select fixture.attempt();
select is(
  (aivedio._read_poll(
    attempt, aivedio._profile(bare.provider), jsonb_build_object('kind', 'response', 'http_status', 200, 'body', bare.body)
  )).meaning,
  'malformed', format('%s: a success without a result is not believed', bare.provider)
)
from bare
cross join aivedio.task_attempts as attempt
order by bare.provider;

-- Veo's is a failure, Mux's is none, since an asset may have no stream that anybody may play, and fal's comes by a second
-- request, or in a callback that then is a hint.
select is(
  aivedio._is_thin(aivedio._profile('fal'), aivedio.normalise('fal', 'webhook', '{"request_id": "r", "status": "OK", "payload": null}')), true,
  'fal: a success without a result is not believed'
);
select is(
  (select string_agg(provider.name, ', ' order by provider.name) from aivedio.providers as provider where provider.name not in (select bare.provider from bare)),
  'fal, mux, veo', 'all others are here'
);
select is(
  (aivedio._read_poll(
    attempt, aivedio._profile('mux'), '{"kind": "response", "http_status": 200, "body": {"data": {"id": "1", "status": "ready"}}}'
  )).meaning,
  'body', 'mux: ready without a playback id'
)
from aivedio.task_attempts as attempt;

-- A rule that no sample needs is one that nobody has thought about.
select is_empty(
  $$
    select provider.name, rule.value
    from aivedio.providers as provider
    cross join lateral jsonb_array_elements(provider.effective -> 'errors') with ordinality as rule (value, place)
    where not exists (
      select 1
      from sample
      where sample.provider = provider.name
        and sample.said ~* (rule.value ->> 'match')
        and (sample.class, sample.code) = (rule.value ->> 'class', rule.value ->> 'code')
    )
  $$,
  'each rule of each profile has its sample'
);

select finish();
rollback;
