-- Stage 30: what a task names as its model reaches the paths that the profile means, and no others.
begin;
\ir support/fixtures.sql
select plan(22);

select fixture.task();
select fixture.attempt();

create function pg_temp.path(p_provider text, p_model text)
returns text
language plpgsql
as $path$
declare
  v_attempt aivedio.task_attempts;
  v_profile constant jsonb := aivedio._profile(p_provider);
begin
  select attempt.* into strict v_attempt from aivedio.task_attempts as attempt;
  v_attempt.provider := p_provider;
  v_attempt.model := p_model;
  return split_part(
    replace((aivedio._build_request('submit', v_attempt, v_profile, 1, '{}', null)).url, v_profile ->> 'base_url', ''), '?', 1
  );
end;
$path$;

select is(pg_temp.path(given.provider, given.model), given.path, format('%s, model %s', given.provider, given.model))
from (values
  ('fal', 'fal-ai/veo3', '/fal-ai/veo3'),
  ('fal', '../../etc', '/%2E%2E/%2E%2E/etc'),
  ('fal', '//evil.example/a', '/evil.example/a'),
  ('fal', 'a?b#c', '/a%3Fb%23c'),
  ('runway', 'video_to_video/gen4', '/v1/video_to_video'),
  ('runway', 'gen4', '/v1/text_to_video'),
  ('runway', 'uploads/x', '/v1/text_to_video'),
  ('runway', '../tasks/x', '/v1/text_to_video'),
  ('kling', 'text-to-video/kling-3.0', '/text-to-video/kling-3.0'),
  ('kling', 'tasks', '/no-such-model'),
  ('kling', 'account/kling-3.0/delete', '/no-such-model'),
  ('kling_legacy', 'image2video/kling-v1', '/v1/videos/image2video'),
  ('kling_legacy', '..', '/v1/videos/text2video'),
  ('vidu', 'template-story', '/ent/v2/template-story'),
  ('vidu', 'tasks/x', '/ent/v2/no-such-endpoint'),
  ('did', 'talks', '/talks'),
  ('did', 'credits', '/no-such-kind'),
  ('veo', 'veo-3.1', '/models/veo-3.1:predictLongRunning'),
  ('veo', '../x', '/models/..%2Fx:predictLongRunning'),
  ('veo', '..', '/models/%2E%2E:predictLongRunning'),
  ('seedance', '../x', '/contents/generations/tasks'),
  ('mux', 'anything/at all', '/assets')
) as given (provider, model, path);

select finish();
rollback;
