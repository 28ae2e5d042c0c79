-- Stage 30: an installation changes a profile without touching what was shipped, and leaves a trace.
begin;
\ir support/fixtures.sql
select plan(24);

-- Laying one value over another.
select is(aivedio._jsonb_merge(given.base, given.over), given.expected, given.why)
from (values
  ('{"a": 1, "b": 2}'::jsonb, '{"b": 3}'::jsonb, '{"a": 1, "b": 3}'::jsonb, 'a key is replaced'),
  ('{"a": {"x": 1, "y": 2}}', '{"a": {"y": 3, "z": 4}}', '{"a": {"x": 1, "y": 3, "z": 4}}', 'objects merge at every depth'),
  ('{"a": [1, 2]}', '{"a": [3]}', '{"a": [3]}', 'an array is replaced whole'),
  ('{"a": 1, "b": 2}', '{"a": null}', '{"b": 2}', 'null removes a key'),
  ('{"a": {"x": 1}}', '{"a": {"x": null}}', '{"a": {}}', 'null removes a deep key'),
  ('{"a": 1}', '{"a": {"x": 1}}', '{"a": {"x": 1}}', 'an object replaces a scalar'),
  ('{}', '{"a": {"x": null, "y": 1}}', '{"a": {"y": 1}}', 'a null in a new object is left out'),
  ('{"a": 1}', '{}', '{"a": 1}', 'nothing changes nothing'),
  ('{"a": null}', '{"b": 1}', '{"a": null, "b": 1}', 'a null that was there stays')
) as given (base, over, expected, why);

-- Overriding.
create function pg_temp.url()
returns text
language sql
as $url$
  select effective ->> 'base_url' from aivedio.providers where name = 'replicate';
$url$;

select revision as before from aivedio.providers where name = 'replicate' \gset

select lives_ok(
  $$ select aivedio.override_provider('replicate', '{"base_url": "http://127.0.0.1:8080", "local": true, "quota": {"provider": 7}}', 'ann', 'a trial') $$,
  'a provider is pointed elsewhere'
);
select is(pg_temp.url(), 'http://127.0.0.1:8080', 'the override is in force');
select is((select profile ->> 'base_url' from aivedio.providers where name = 'replicate'), 'https://api.replicate.com', 'what was shipped is untouched');
select is((select revision from aivedio.providers where name = 'replicate'), (:before + 1)::bigint, 'it is a new revision');
select is((select full_rate from aivedio.poll_quotas where level = 'provider' and key = 'replicate'), 7::double precision, 'the bucket follows');
select results_eq(
  $$ select actor, action, subject, reason, detail -> 'after' ->> 'base_url' from aivedio.operator_actions order by id desc limit 1 $$,
  $$ values ('ann', 'override_provider', 'replicate', 'a trial', 'http://127.0.0.1:8080') $$,
  'who did it, what and why is on record'
);

-- A later shipment keeps the override on top.
select aivedio.define_provider('replicate', (select jsonb_set(profile, '{deadline_s}', '99') from aivedio.providers where name = 'replicate'));
select results_eq(
  $$ select effective ->> 'base_url', effective ->> 'deadline_s' from aivedio.providers where name = 'replicate' $$,
  $$ values ('http://127.0.0.1:8080', '99') $$,
  'a new shipment and the old override live together'
);

select aivedio.override_provider('replicate', '{}', 'ann', 'the trial is over');
select is(pg_temp.url(), 'https://api.replicate.com', 'an empty override goes back to what was shipped');

-- Refused.
select throws_ok(
  $$ select aivedio.override_provider('replicate', '{"base_url": "http://127.0.0.1:1"}', 'ann', 'x') $$,
  'VC305', 'provider profile is not usable', 'the merged profile must be usable'
);
select is(pg_temp.url(), 'https://api.replicate.com', 'a refused override changes nothing');
select throws_ok($$ select aivedio.override_provider('nobody', '{}', 'ann', 'x') $$, 'VC301', 'provider is not defined', 'an unknown provider');
select throws_ok($$ select aivedio.override_provider('replicate', '[]', 'ann', 'x') $$, 'VC307', 'an override needs a JSON object, who and why', 'an array is no override');
select throws_ok($$ select aivedio.override_provider('replicate', '{}', '', 'x') $$, 'VC307', 'an override needs a JSON object, who and why', 'somebody must have done it');
select throws_ok($$ select aivedio.override_provider('replicate', '{}', 'ann', null) $$, 'VC307', 'an override needs a JSON object, who and why', 'for some reason');
select throws_ok(
  $$ select aivedio.override_provider('replicate', '{"auth": {"secret": "r8_0123"}}', 'ann', 'x') $$,
  'VC305', 'provider profile is not usable', 'a secret does not enter by an override either'
);

select finish();
rollback;
