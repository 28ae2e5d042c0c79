-- Stage 20: requests are built from the profile, and no value can break out of its place.
begin;
\ir support/fixtures.sql
select plan(56);

-- Parts of a URL.
select is(aivedio._url_part(given.value), given.expected, given.why)
from (values
  ('abc-XYZ_0.9~', 'abc-XYZ_0.9~', 'unreserved characters stay'),
  ('a/b', 'a%2Fb', 'a slash cannot reach another path'),
  ('../admin', '..%2Fadmin', 'nor can dots and a slash'),
  ('a b?c=d&e#f', 'a%20b%3Fc%3Dd%26e%23f', 'nor a query, nor a fragment'),
  ('100%', '100%25', 'a percent sign is encoded'),
  ('é😀', '%C3%A9%F0%9F%98%80', 'other letters are UTF-8, encoded'),
  (E'a\r\nb', 'a%0D%0Ab', 'a line break is encoded'),
  ('.', '%2E', 'a dot alone does not mean "here"'),
  ('..', '%2E%2E', 'nor do two mean "up"'),
  ('..a', '..a', 'among letters they are letters'),
  ('', '', 'nothing stays nothing')
) as given (value, expected, why);
select is(length(aivedio._url_part(repeat('/', 10000))), 30000, 'a long value is no problem');

-- A value that is a path itself.
select is(aivedio._fill_text('/{+v}/x', jsonb_build_object('v', given.value), true), given.expected, given.why)
from (values
  ('fal-ai/veo3', '/fal-ai/veo3/x', 'its slashes stay'),
  ('a/../../admin', '/a/%2E%2E/%2E%2E/admin/x', 'it does not climb'),
  ('//evil.example//b/', '/evil.example/b/x', 'it has no empty parts, so it names no host'),
  ('a?b=c#d/e f', '/a%3Fb%3Dc%23d/e%20f/x', 'each part is encoded'),
  ('', '//x', 'nothing stays nothing')
) as given (value, expected, why);
select is(aivedio._fill_text('{+v}', '{"v": "a/b c"}', false), 'a/b c', 'in a text it is what it is');

-- Text templates: one pass.
select is(aivedio._fill_text('/jobs/{provider_task_id}/x', '{"provider_task_id": "p1"}', true), '/jobs/p1/x', 'a value takes its place');
select is(aivedio._fill_text('{a}{b}{a}', '{"a": "1", "b": "2"}', false), '121', 'any number of times');
select is(aivedio._fill_text('x{missing}y', '{}', false), 'xy', 'a missing value is empty');
select is(aivedio._fill_text('{a}', '{"a": "{b}", "b": "secret"}', false), '{b}', 'what a value holds is no placeholder');
select is(aivedio._fill_text('{input.style.name}', '{"input": {"style": {"name": "noir"}}}', false), 'noir', 'a dot leads into an object');
select is(aivedio._fill_text('no placeholder {} {A}', '{"a": 1}', false), 'no placeholder {} {A}', 'other braces stay');
select is(aivedio._fill_text(null, '{}', false), null, 'no template, no text');

-- JSON templates.
select is(aivedio._fill_body(given.template, '{"model": "m", "n": 5, "input": {"prompt": "a \"cat\"", "seed": 7, "flag": false, "nothing": null}}'), given.expected, given.why)
from (values
  ('{"in": "{input}"}'::jsonb, '{"in": {"prompt": "a \"cat\"", "seed": 7, "flag": false, "nothing": null}}'::jsonb, 'a placeholder alone is the value itself'),
  ('{"seed": "{input.seed}", "flag": "{input.flag}"}', '{"seed": 7, "flag": false}', 'with its type'),
  ('{"text": "Make: {input.prompt}!"}', '{"text": "Make: a \"cat\"!"}', 'among other text it is text'),
  ('{"a": "{input.absent}", "b": 1}', '{"b": 1}', 'a member without a value is left out'),
  ('["x", "{input.absent}", "{n}"]', '["x", 5]', 'so is an element'),
  ('{"deep": [{"m": "{model}"}]}', '{"deep": [{"m": "m"}]}', 'at every depth'),
  ('{"n": 1, "t": true, "z": null}', '{"n": 1, "t": true, "z": null}', 'what is no string stays'),
  ('{"...": "{input}", "seed": 1}', '{"prompt": "a \"cat\"", "seed": 1, "flag": false, "nothing": null}', 'dots stand for what an object holds, but for what is named beside them'),
  ('{"...": "{input}", "flag": "{absent}"}', '{"prompt": "a \"cat\"", "seed": 7, "nothing": null}', 'also when that is left out'),
  ('{"...": "{model}", "a": 1}', '{"a": 1}', 'what is no object adds nothing'),
  ('{"...": "{input.absent}"}', '{}', 'nor does what is missing'),
  ('{"o": {"...": "{input}", "prompt": "x"}}', '{"o": {"prompt": "x", "seed": 7, "flag": false, "nothing": null}}', 'at every depth'),
  ('{}', '{}', 'an empty object stays')
) as given (template, expected, why);
select is(aivedio._fill_body(null, '{}'), null, 'no template, no body');

-- Whole requests.
select fixture.task(p_input => '{"prompt": "a {callback_url}"}');
select fixture.attempt(p_provider_task_id => 'p/1');

create function pg_temp.request(p_request text, p_override jsonb default '{}')
returns aivedio.provider_request
language sql
as $request$
  select aivedio._build_request(
    p_request, attempt, aivedio._jsonb_merge(aivedio._profile('replicate'), p_override), 3, '{"prompt": "a {callback_url}"}', 'https://us.example/callbacks/replicate/tok'
  )
  from aivedio.task_attempts as attempt
  where attempt.id = fixture.id('attempt');
$request$;

select results_eq(
  $$ select method, url, body, auth, timeout_s, local, lease_token, provider, credential, trace_id from pg_temp.request('submit') $$,
  $$
    values ('POST', 'https://api.replicate.com/v1/predictions',
      '{"version": "lumen/video-1", "input": {"prompt": "a {callback_url}"}, "webhook": "https://us.example/callbacks/replicate/tok",
        "webhook_events_filter": ["start", "output", "logs", "completed"]}'::jsonb,
      '{"kind": "bearer", "header": "authorization", "prefix": "Bearer ", "secret": "env:REPLICATE_API_TOKEN"}'::jsonb,
      30::real, false, 3::bigint, 'replicate', 'default', 'trace-task')
  $$,
  'a submission: the user''s text is data, also where it looks like a placeholder'
);
select results_eq(
  $$ select method, url, body, max_bytes from pg_temp.request('poll') $$,
  $$ values ('GET', 'https://api.replicate.com/v1/predictions/p%2F1', null::jsonb, 1048576) $$,
  'a poll'
);
select is((pg_temp.request('cancel')).url, 'https://api.replicate.com/v1/predictions/p%2F1/cancel', 'a cancel');
select is(
  (pg_temp.request('submit', '{"models": {"lumen/video-1": "5c7d5dc6"}}')).body ->> 'version', '5c7d5dc6', 'a profile may translate the names of models'
);
select is((pg_temp.request('poll', '{"base_url": "http://127.0.0.1:9", "local": true}')).local, true, 'a local profile says so');
select is(
  (pg_temp.request('submit', '{"submit": {"headers": {"X-Tag": "{input.prompt}", "Idempotency-Key": "{client_request_id}"}}}')).headers,
  '{"content-type": "application/json", "x-tag": "a {callback_url}", "idempotency-key": "request-attempt"}'::jsonb,
  'headers are templates too'
);
select is(
  (aivedio._build_request(
    'submit', attempt, aivedio._jsonb_merge(aivedio._profile('replicate'), '{"submit": {"headers": {"x": "{input.p}"}}}'),
    1, jsonb_build_object('p', E'a\r\nevil: 1'), null
  )).headers ->> 'x',
  'aevil: 1', 'a value cannot begin another header'
)
from aivedio.task_attempts as attempt
where attempt.id = fixture.id('attempt');
select is(
  (aivedio._build_request('submit', attempt, aivedio._profile('replicate'), 1, '{}', null)).body ? 'webhook', false,
  'without a callback URL the member is left out'
)
from aivedio.task_attempts as attempt
where attempt.id = fixture.id('attempt');

-- What a profile adds to the path and query.
select is((pg_temp.request('submit', given.override)).url, given.url, given.why)
from (values
  ('{"submit": {"query": {"b": "{callback_url}", "a": "{provider_task_id}", "c": "{input.absent}"}}}'::jsonb,
    'https://api.replicate.com/v1/predictions?a=p%2F1&b=https%3A%2F%2Fus.example%2Fcallbacks%2Freplicate%2Ftok', 'a query is encoded and in order, without what is missing'),
  ('{"submit": {"query": {}}}', 'https://api.replicate.com/v1/predictions', 'an empty query is none'),
  ('{"submit": {"path": "/{owner}/{rest}"}, "values": {"owner": {"from": "model", "match": "^([^/]+)/"}, "rest": {"from": "model", "match": "^x(.*)", "default": "z"}}}',
    'https://api.replicate.com/lumen/z', 'values are made of the model by pattern, or by default'),
  ('{"submit": {"path": "/{owner}"}, "models": {"lumen/video-1": "other/name"}, "values": {"owner": {"from": "model", "match": "^([^/]+)/"}}}',
    'https://api.replicate.com/other', 'of the model as the provider calls it'),
  ('{"submit": {"path": "/{style}"}, "values": {"style": {"from": "input.prompt", "match": "(a .*)"}}}',
    'https://api.replicate.com/a%20%7Bcallback_url%7D', 'or of the input, encoded like any value')
) as given (override, url, why);

-- Credentials: a row of its own stands for the profile's.
insert into aivedio.provider_credentials (provider, name, secret_ref, updated_at) values ('replicate', 'default', 'file:/run/secrets/r', aivedio._clock());
select is((pg_temp.request('poll')).auth ->> 'secret', 'file:/run/secrets/r', 'a credential''s own reference is used');
select is(
  (pg_temp.request('poll', '{"auth": {"kind": "basic", "id": "env:ID", "secret": "env:SECRET"}}')).auth -> 'id', 'null', 'and holds both halves of a pair'
);
update aivedio.provider_credentials set enabled = false;
select is((pg_temp.request('poll')).auth ->> 'secret', 'env:REPLICATE_API_TOKEN', 'unless it is disabled');
select is_empty(
  $$ select 1 from pg_temp.request('submit') as request where to_jsonb(request)::text ~ '(whsec_|r8_)' $$, 'no secret is ever in a request, only where to find it'
);

select finish();
rollback;
