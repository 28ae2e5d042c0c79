-- Stage 30: a provider is defined by data, and data that cannot work is refused with all its mistakes.
begin;
\ir support/fixtures.sql
select plan(99);

create temporary table good (profile jsonb);
insert into good values ($profile$
{
  "base_url": "https://api.lumen.example",
  "auth": {"kind": "header", "header": "x-api-key", "secret": "env:LUMEN_KEY"},
  "submit": {"method": "POST", "path": "/jobs", "body": {"input": "{input}", "cb": "{callback_url}"}, "accepted": [200], "provider_task_id": "$.id"},
  "poll": {"method": "GET", "path": "/jobs/{provider_task_id}", "interval_s": {"running": [3, 6]}},
  "cancel": {"method": "DELETE", "path": "/jobs/{provider_task_id}", "confirmed": [200, 404]},
  "webhook": {"scheme": "standard-webhooks-v1", "secrets": [{"ref": "file:/run/secrets/lumen", "version": "current"}]},
  "fields": {"provider_task_id": "$.id", "status": "$.state", "occurred_at": ["$.at"], "outputs": "$.url"},
  "words": {"webhook": {"ok": "succeeded"}, "poll": {"ok": "succeeded"}},
  "quota": {"provider": 20, "model": 5},
  "redact": ["$.input"]
}
$profile$);

create function pg_temp.detail(p_profile jsonb)
returns text
language plpgsql
as $detail$
declare
  v_detail text;
begin
  perform aivedio.define_provider('lumen', p_profile);
  return null;
exception
  when sqlstate 'VC305' then
    get stacked diagnostics v_detail = pg_exception_detail;
    return v_detail;
end;
$detail$;

-- A change of the good profile at one place, or the removal of it.
create function pg_temp.wrong(p_path text, p_value jsonb)
returns text
language sql
as $wrong$
  select pg_temp.detail(jsonb_set(good.profile, p_path::text[], p_value)) from good;
$wrong$;

create function pg_temp.without(p_path text)
returns text
language sql
as $without$
  select pg_temp.detail(good.profile #- p_path::text[]) from good;
$without$;

-- Defined.
select lives_ok($$ select aivedio.define_provider('lumen', (select profile from good)) $$, 'a good profile is accepted');
select results_eq(
  $$ select provider.revision, provider.effective = provider.profile, provider.updated_at from aivedio.providers as provider where name = 'lumen' $$,
  $$ values (1::bigint, true, aivedio._clock()) $$,
  'it is in force, revision 1'
);
select results_eq(
  $$ select quota.rate, quota.burst, quota.full_rate from aivedio.poll_quotas as quota where level = 'provider' and key = 'lumen' $$,
  $$ values (20::double precision, 3::double precision, 20::double precision) $$,
  'its bucket has the profile''s rate'
);
select aivedio.define_provider('lumen', (select profile from good));
select is((select revision from aivedio.providers where name = 'lumen'), 1::bigint, 'the same profile again changes nothing');
select aivedio.define_provider('lumen', (select jsonb_set(profile, '{quota,provider}', '40') from good));
select is((select revision from aivedio.providers where name = 'lumen'), 2::bigint, 'another profile is a new revision');
select is((select rate from aivedio.poll_quotas where level = 'provider' and key = 'lumen'), 40::double precision, 'with a new rate');

-- Refused: each mistake is named.
select is(pg_temp.wrong(given.path, given.value), given.expected, given.expected)
from (values
  ('{base_url}', '"http://api.lumen.example"'::jsonb, 'base_url: https, unless the profile is local'),
  ('{base_url}', '"https://user:pass@api.lumen.example"', 'base_url: a URL with scheme and host, without a slash at its end, a query or a user'),
  ('{base_url}', '"https://api.lumen.example/"', 'base_url: a URL with scheme and host, without a slash at its end, a query or a user'),
  ('{base_url}', '"https://api.lumen.example?x=1"', 'base_url: a URL with scheme and host, without a slash at its end, a query or a user'),
  ('{base_url}', '7', 'base_url: a URL with scheme and host, without a slash at its end, a query or a user'),
  ('{local}', '"yes"', 'local: true or false'),
  ('{auth,kind}', '"magic"', 'auth.kind: bearer, header, basic, jwt-hs256 or none'),
  ('{auth,secret}', '"r8_hidden"', 'auth.secret: a reference, env:NAME or file:/path; a secret stands in the profile: name it by reference, and revoke it'),
  ('{auth,header}', '"x api key"', 'auth.header: the name of a header'),
  ('{webhook,secrets,0,ref}', '"plain"', 'webhook.secrets[0].ref: a reference, env:NAME or file:/path'),
  ('{webhook,secrets}', '[]', 'webhook.secrets: at least one {ref, version}, for a provider that signs'),
  ('{webhook}', '"yes"', 'webhook: an object or null'),
  ('{submit,method}', '"SEND"', 'submit.method: GET, POST, PUT, PATCH or DELETE'),
  ('{submit,path}', '"jobs"', 'submit.path: a path that begins with one slash, without a query'),
  ('{submit,path}', '"//evil.example/jobs"', 'submit.path: a path that begins with one slash, without a query'),
  ('{submit,accepted}', '[]', 'submit.accepted: the HTTP statuses of success, 2xx'),
  ('{submit,body,cb}', '"{callback}"', 'submit: there is no placeholder {callback}'),
  ('{submit,headers}', '{"x": "a\nb"}', 'submit.headers.x: name and value are plain text'),
  ('{poll,path}', '"/jobs"', 'poll: {provider_task_id} stands nowhere'),
  ('{poll,http}', '{"4xx": "shrug"}', 'poll.http.4xx: a status or a class like 4xx, and one of {body,failed,canceled,not_found,auth,throttled,retry,refused}'),
  ('{poll,interval_s,running}', '[6, 3]', 'poll.interval_s.running: [shortest, longest] in seconds, for submitted, queued, running or unknown'),
  ('{poll,timeout_s}', '"5"', 'poll.timeout_s: a number from 1 to 25'),
  ('{cancel,confirmed}', '[]', 'cancel.confirmed: the HTTP statuses that confirm'),
  ('{fields,status}', '"$.a["', 'fields.status: no valid SQL/JSON path'),
  ('{fields,status}', 'null', 'fields.status: missing'),
  ('{fields,state}', '"$.a"', 'fields.state: no such field'),
  ('{fields,occurred_at}', '"$.at"', 'fields.occurred_at: a list of paths, the latest moment first'),
  ('{fields,occurred_at}', '["$.at", "$["]', 'fields.occurred_at[1]: no valid SQL/JSON path'),
  ('{fields,outputs}', '[{"kind": "video"}]', 'fields.outputs[0].path: a SQL/JSON path, as a string'),
  ('{fields,progress_match}', '"("', 'fields.progress_match: no valid regular expression'),
  ('{functions}', '{"progress": "pg_catalog.pg_sleep"}', 'functions.progress: a STABLE or IMMUTABLE function of aivedio_owner, (jsonb) returns numeric'),
  ('{words,poll,ok}', '"done"', 'words.poll.ok: one of {queued,running,succeeded,failed,canceled}'),
  ('{words,stream}', '{}', 'words.stream: no such source'),
  ('{errors}', '[{"match": "(", "class": "x", "code": "unknown"}]', 'errors[0].match: no valid regular expression'),
  ('{errors}', '[{"match": "a", "class": "x", "code": "E42"}]', 'errors[0].code: one of {provider_rejected,content_refused,provider_failed,provider_busy,provider_unreachable,timed_out,canceled_by_provider,unknown}'),
  ('{hidden_failures}', '[{"when": "$.a =="}]', 'hidden_failures[0].when: no valid SQL/JSON path'),
  ('{redact}', '["input"]', 'redact: ""input"" does not begin with member names, like $.data.url'),
  ('{quota,provider}', '0', 'quota.provider: a number from 0.001 to 10000'),
  ('{deadline_s}', '1e300', 'deadline_s: a number from 1 to 2592000'),
  ('{credits}', '2.5', 'credits: a whole number of credits'),
  ('{model_credits}', '{"video-1": -1}', 'model_credits.video-1: a whole number of credits'),
  ('{model_credits}', '7', 'model_credits: an object of model and credits'),
  ('{auth,id}', '"env:LUMEN_ID"', 'auth.id: only basic and jwt-hs256 have one'),
  ('{auth}', '{"kind": "basic", "id": "me", "secret": "env:S"}', 'auth.id: a reference, env:NAME or file:/path'),
  ('{auth}', '{"kind": "jwt-hs256", "secret": "env:S", "lifetime_s": 5}', 'auth.lifetime_s: a number from 60 to 86400'),
  ('{auth,prefix}', '"a\nb"', 'auth.prefix: plain text before the secret'),
  ('{auth,secrets}', '"env:S"', 'auth.secrets: no such key'),
  ('{models}', '{"a": 7}', 'models: an object of our name and the provider''s'),
  ('{values}', '[]', 'values: an object of name and {from, match, default}'),
  ('{values}', '{"model": {"from": "model", "match": "."}}', 'values.model: a new name of letters and underscores'),
  ('{values}', '{"app": {"from": "callback_url", "match": "."}}', 'values.app.from: model, provider_task_id, client_request_id or input.NAME'),
  ('{values}', '{"app": {"from": "model", "match": "("}}', 'values.app.match: no valid regular expression'),
  ('{values}', '{"app": {"from": "model", "match": ".", "default": 7}}', 'values.app.default: text'),
  ('{submit,path}', '"/jobs?a=1"', 'submit.path: a path that begins with one slash, without a query'),
  ('{submit,path}', '"/{+app}/jobs"', 'submit: there is no placeholder {+app}'),
  ('{submit,body,cb}', '"{answer.id}"', 'submit: there is no placeholder {answer.id}'),
  ('{submit,query}', '{"a b": "c"}', 'submit.query.a b: name and value are plain text'),
  ('{submit,query}', '"a=b"', 'submit.query: an object'),
  ('{submit,accept}', '[200]', 'submit.accept: no such key'),
  ('{submit,answers}', '[{"when": "$.error", "means": "refused"}]', 'submit.answers[0].when: a predicate, true or false, such as $.error == "busy"'),
  ('{submit,answers}', '[{"when": "$.error == 1", "means": "bad"}]', 'submit.answers[0].means: one of {body,failed,canceled,not_found,auth,throttled,retry,refused}'),
  ('{submit,answers}', '[{"means": "retry"}]', 'submit.answers[0].when: missing'),
  ('{submit,error_code}', '"$["', 'submit.error_code: no valid SQL/JSON path'),
  ('{poll,then}', '{"when": "$.a == 1", "into": "b", "method": "GET", "path": "/jobs"}', 'poll.then: {provider_task_id} stands nowhere'),
  ('{poll,then}', '{"when": "$.a", "into": "b", "method": "GET", "path": "/jobs/{answer.file}"}', 'poll.then.when: a predicate, true or false, such as $.error == "busy"'),
  ('{poll,then}', '{"when": "$.a == 1", "method": "GET", "path": "/jobs/{answer.file}"}', 'poll.then.into: the name of the member that holds the second answer'),
  ('{poll,gone_after_cancel}', '"yes"', 'poll.gone_after_cancel: true or false'),
  ('{cancel,only_when}', '["succeeded"]', 'cancel.only_when: a list of queued, running or both'),
  ('{cancel,only_when}', '[]', 'cancel.only_when: a list of queued, running or both'),
  ('{cancel,seen_within_s}', '0', 'cancel.seen_within_s: a number from 1 to 60'),
  ('{fields,status}', '[{"when": "$.done == true"}]', 'fields.status[0].word: the word that words translates'),
  ('{fields,status}', '[{"when": "$.done", "word": "done"}]', 'fields.status[0].when: a predicate, true or false, such as $.error == "busy"'),
  ('{fields,error_message}', '["$.a", "$["]', 'fields.error_message[1]: no valid SQL/JSON path'),
  ('{fields,outputs}', '[{"path": "$.id", "url": "http://x/{}"}]', 'fields.outputs[0].url: {base_url} or https, and {} for what the path finds'),
  ('{fields,outputs}', '[{"path": "$.id", "url": "https://x.example/file"}]', 'fields.outputs[0].url: {base_url} or https, and {} for what the path finds'),
  ('{fields,outputs}', '"$"', 'fields.outputs: "$" does not begin with member names, like $.data.url'),
  ('{webhook,fields}', '"$.a"', 'webhook.fields: an object, over the common fields'),
  ('{webhook,fields}', '{"state": "$.a"}', 'webhook.fields.state: no such field'),
  ('{webhook,fields}', '{"outputs": "$["}', 'webhook.fields.outputs: no valid SQL/JSON path; webhook.fields.outputs: "$[" does not begin with member names, like $.data.url'),
  ('{hidden_failures}', '[{"when": "$.error"}]', 'hidden_failures[0].when: a predicate, true or false, such as $.error == "busy"'),
  ('{success_needs_output}', '"yes"', 'success_needs_output: true or false'),
  ('{webhook,required}', 'null', 'webhook.required: a list'),
  ('{submit,answers}', '{"when": "$.a == 1", "means": "retry"}', 'submit.answers: a list'),
  ('{surprise}', '1', 'surprise: no such key')
) as given (path, value, expected);

select is(pg_temp.without('{submit}'), 'submit: missing', 'without a way to submit there is no provider');
select is(pg_temp.without('{words,webhook}'), 'words.webhook: an object of word and status', 'callbacks need words');
select is(
  pg_temp.detail('{}'),
  'base_url: a URL with scheme and host, without a slash at its end, a query or a user; auth.kind: bearer, header, basic, jwt-hs256 or none; '
    'submit: missing; poll: needed where there is no webhook; fields: an object; words: an object of webhook and poll',
  'every mistake is named at once'
);
select is(pg_temp.detail('[]'), 'a profile is a JSON object', 'an array is no profile');
select is((select revision from aivedio.providers where name = 'lumen'), 2::bigint, 'a refused profile leaves the old one in force');

select throws_ok($$ select aivedio.define_provider('Lumen', '{}') $$, 'VC306', 'provider name is not usable', 'a name is part of a URL');
select throws_ok($$ select aivedio.define_provider(null, '{}') $$, 'VC306', 'provider name is not usable', 'there must be a name');
select throws_ok($$ select aivedio.define_provider('lumen', null) $$, 'VC305', 'provider profile is not usable', 'there must be a profile');

-- What we ship is usable.
select is_empty(
  $$ select provider.name, aivedio._profile_problems(provider.effective) from aivedio.providers as provider
     where aivedio._profile_problems(provider.effective) <> '{}' $$,
  'every shipped profile is usable'
);

select finish();
rollback;
