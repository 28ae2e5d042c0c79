-- Stage 10: accept_callbacks stores each distinct delivery once, and everything that arrives gets an answer.
begin;
\ir support/fixtures.sql
select plan(43);

create function pg_temp.received(
  p_ordinal integer, p_headers jsonb, p_body text, p_signed boolean default true, p_token text default null,
  p_error text default null, p_provider text default 'replicate'
)
returns aivedio.received_callback
language sql
as $received$
  select row(
    p_ordinal, p_provider, p_headers, p_body, sha256(convert_to(coalesce(p_body, 'raw'), 'UTF8')),
    case when p_signed then 'current' end, p_signed,
    case when p_token is not null then sha256(convert_to(p_token, 'UTF8')) end, 'trace-' || p_ordinal, p_error
  )::aivedio.received_callback;
$received$;

select fixture.task();
select fixture.attempt(p_token => 'secret');

-- A batch: new, its twin, another, a repeat of the first in a later call.
create temporary table answer as
select * from aivedio.accept_callbacks(array[
  pg_temp.received(0, '{"webhook-id": "m1"}', '{"id": "provider-task", "status": "processing", "input": {"prompt": "x"}, "webhook": "https://us/secret"}'),
  pg_temp.received(1, '{"webhook-id": "m1"}', '{"id": "provider-task", "status": "processing"}'),
  pg_temp.received(2, '{"webhook-id": "m2"}', '{"id": "provider-task", "status": "succeeded", "output": "https://replicate.delivery/x"}')
]);

select results_eq(
  $$ select ordinal, is_new, is_dead, inbox_id is not null from answer order by ordinal $$,
  $$ values (0, true, false, true), (1, false, false, false), (2, true, false, true) $$,
  'W10: every delivery is answered; a twin in the same batch makes no row'
);
select results_eq(
  $$ select is_new, is_dead, inbox_id from aivedio.accept_callbacks(array[pg_temp.received(9, '{"webhook-id": "m1"}', '{"id": "provider-task", "status": "processing"}')]) $$,
  $$ values (false, false, null::bigint) $$,
  'a repeat in a later call makes no row'
);
select results_eq(
  $$
    select dedup_key collate "default", provider_event_id, provider_task_id, process_status, received_at, signed, signature_key_version, trace_id
    from aivedio.provider_callback_inbox order by dedup_key
  $$,
  $$
    values ('m1', 'm1', 'provider-task', 'pending', aivedio._clock(), true, 'current', 'trace-0'),
      ('m2', 'm2', 'provider-task', 'pending', aivedio._clock(), true, 'current', 'trace-2')
  $$,
  'rows carry what is known at arrival'
);
select results_eq(
  $$ select payload -> 'input', payload -> 'webhook' from aivedio.provider_callback_inbox where dedup_key = 'm1' $$,
  $$ values ('"[redacted]"'::jsonb, '"[redacted]"'::jsonb) $$,
  'what no rule reads is not stored, above all not our own callback URL'
);
select is(
  (select payload ->> 'output' from aivedio.provider_callback_inbox where dedup_key = 'm2'), 'https://replicate.delivery/x',
  'outputs stay until they are applied'
);

-- Another provider may use the same event id.
select aivedio.define_provider('lumen', (
  select jsonb_set(profile, '{webhook,event_id_header}', 'null') || '{"fields": {"provider_task_id": "$.id", "status": "$.status", "updated_at": "$.at"}}'
  from aivedio.providers where name = 'replicate'
));
select is(
  (select is_new from aivedio.accept_callbacks(array[pg_temp.received(0, '{"webhook-id": "m1"}', '{"id": "1", "status": "processing"}', p_provider => 'lumen')])),
  true, 'keys belong to their provider'
);

-- W11: without an event id, the same body is the same delivery; any other body is another.
select is(
  (select is_new from aivedio.accept_callbacks(array[pg_temp.received(0, '{}', '{"id": "1", "status": "processing"}', p_provider => 'lumen')])),
  false, 'W11: a repeat with the same body is recognised'
);
select is(
  (select is_new from aivedio.accept_callbacks(array[pg_temp.received(0, '{}', '{"id": "1", "status": "processing", "x": 1}', p_provider => 'lumen')])),
  true, 'W11: another body is another delivery'
);
select is(
  (select count(*) from aivedio.provider_callback_inbox where provider = 'lumen' and dedup_key ~ '^body:[0-9a-f]{64}$' and provider_event_id is null),
  2::bigint, 'its key is a hash'
);
select is(
  (select is_new from aivedio.accept_callbacks(array[pg_temp.received(0, jsonb_build_object('webhook-id', repeat('x', 100000)), '{"id": "1", "status": "processing"}')])),
  true, 'an event id beyond all sense is none, and no error'
);

-- What cannot be read is stored dead, alone, and answered like the rest.
truncate answer;
insert into answer
select * from aivedio.accept_callbacks(array[
  pg_temp.received(0, '{"webhook-id": "b0"}', '{"id": "a\u0000b", "status": "processing"}'),
  pg_temp.received(1, '{"webhook-id": "b1"}', '{"id": "provider-task", "status": "processing"}'),
  pg_temp.received(2, '{"webhook-id": "b2"}', 'not json'),
  pg_temp.received(3, '{"webhook-id": "b3"}', '["an", "array"]'),
  pg_temp.received(4, '{"webhook-id": "b4"}', '{"id": "provider-task"}'),
  pg_temp.received(5, '{"webhook-id": "b5"}', null, p_error => 'not_utf8'),
  pg_temp.received(6, '{"webhook-id": "b6"}', '{"id": "\ud800", "status": "processing"}'),
  pg_temp.received(7, '{"webhook-id": "b7"}', '{"id": "provider-task", "status": 1e999999}'),
  pg_temp.received(8, '{"webhook-id": "b8"}', repeat('[', 100000)),
  pg_temp.received(9, '{"webhook-id": "b9"}', ''),
  pg_temp.received(10, '{"webhook-id": "b10"}', '{"id": "provider-task", "status": "processing"}', p_error => 'too_odd')
]);
select results_eq(
  $$ select ordinal, is_new, is_dead from answer order by ordinal $$,
  $$
    values (0, true, true), (1, true, false), (2, true, true), (3, true, true), (4, true, true), (5, true, true), (6, true, true),
      (7, true, true), (8, true, true), (9, true, true), (10, true, true)
  $$,
  'a bad row is dead, the good one beside it is not'
);
select results_eq(
  $$
    select dedup_key collate "default", process_status, last_error_code, payload is null
    from aivedio.provider_callback_inbox
    where dedup_key ~ '^b[0-9]' and provider = 'replicate'
    order by length(dedup_key), dedup_key
  $$,
  $$
    values ('b0', 'dead', 'not_json', true), ('b1', 'pending', null, false), ('b2', 'dead', 'not_json', true), ('b3', 'dead', 'not_object', true),
      ('b4', 'dead', 'missing_field', true), ('b5', 'dead', 'not_utf8', true), ('b6', 'dead', 'not_json', true), ('b7', 'dead', 'not_json', true),
      ('b8', 'dead', 'not_json', true), ('b9', 'dead', 'not_json', true), ('b10', 'dead', 'too_odd', true)
  $$,
  'each says why, and keeps nothing of its body'
);
select results_eq(
  $$ select kind, subject, count from aivedio.alarms where kind = 'callback_unusable' $$,
  $$ values ('callback_unusable', 'replicate', 1::bigint) $$,
  'one alarm for the batch'
);
select results_eq(
  $$ select is_new, is_dead from aivedio.accept_callbacks(array[pg_temp.received(0, '{"webhook-id": "b2"}', 'not json')]) $$,
  $$ values (false, true) $$,
  'a repeated dead delivery makes no second row'
);
select is((select count from aivedio.alarms where kind = 'callback_unusable'), 1::bigint, 'nor a second alarm');

-- W8: an unsigned delivery is a hint, and only from somebody who knows a token.
truncate answer;
insert into answer
select * from aivedio.accept_callbacks(array[
  pg_temp.received(0, '{"webhook-id": "m3"}', '{"id": "provider-task", "status": "failed"}', false, 'secret'),
  pg_temp.received(1, '{"webhook-id": "m4"}', '{"id": "provider-task", "status": "failed"}', false, 'a guess'),
  pg_temp.received(2, '{"webhook-id": "m5"}', '{"id": "provider-task", "status": "failed"}', false, null),
  pg_temp.received(3, '{}', 'anything at all', false, 'secret')
]);
select results_eq(
  $$ select ordinal, is_new, is_dead from answer order by ordinal $$,
  $$ values (0, true, false), (3, false, false) $$,
  'W8: a hint needs a known token; without one there is no answer and no row'
);
select results_eq(
  $$ select signed, payload is null, process_status, provider_event_id, provider_task_id from aivedio.provider_callback_inbox where dedup_key like 'hint:%' $$,
  $$ values (false, true, 'pending', null, null) $$,
  'W8: one row per token, that carries nothing of what it said'
);
select is(
  (select is_new from aivedio.accept_callbacks(array[pg_temp.received(0, '{"webhook-id": "m3"}', '{"id": "provider-task", "status": "processing"}')])),
  true, 'an unsigned delivery does not occupy the key of a signed one'
);
select is(
  (select is_new from aivedio.accept_callbacks(array[pg_temp.received(0, '{}', '{}', false, 'secret', p_provider => 'lumen')])),
  null, 'a token of another provider is unknown'
);

-- A hint that was handled is armed again by the next call, under an id that scans will meet.
select id as hinted from aivedio.provider_callback_inbox where dedup_key like 'hint:%' \gset
update aivedio.provider_callback_inbox set process_status = 'done', processed_at = aivedio._clock(), verdict = 'hint', attempt_id = fixture.id('attempt') where id = :hinted;
select is(
  (select is_new from aivedio.accept_callbacks(array[pg_temp.received(0, '{}', '{}', false, 'secret')])),
  true, 'a handled hint is new again'
);
select results_eq(
  $$ select process_status, verdict, processed_at from aivedio.provider_callback_inbox where dedup_key like 'hint:%' $$,
  $$ values ('pending', null, null::timestamptz) $$,
  'it waits once more'
);
select cmp_ok(
  (select id from aivedio.provider_callback_inbox where dedup_key like 'hint:%'), '>',
  (select max(id) from aivedio.provider_callback_inbox where dedup_key not like 'hint:%'),
  'with a new id: the old one may lie below the low-water mark'
);

-- W20: an unusable delivery whose token we know makes its attempt's poll due.
update aivedio.provider_callback_inbox set process_status = 'done' where dedup_key like 'hint:%';
select results_eq(
  $$ select ordinal, is_dead from aivedio.accept_callbacks(array[pg_temp.received(5, '{"webhook-id": "b20"}', 'x', true, 'secret')]) $$,
  $$ values (5, true) $$,
  'W20: an unusable delivery is answered once'
);
select is((select process_status from aivedio.provider_callback_inbox where dedup_key like 'hint:%'), 'pending', 'W20: and hints at its attempt');

-- Nothing, and nonsense.
select is_empty($$ select * from aivedio.accept_callbacks('{}') $$, 'no delivery, no answer');
select is_empty($$ select * from aivedio.accept_callbacks(null) $$, 'nor for nothing at all');
select throws_ok(
  $$ select aivedio.accept_callbacks(array[pg_temp.received(0, '{}', '{}', p_provider => 'nobody')]) $$,
  'VC301', 'provider is not defined', 'the edge knows the providers: an unknown one is a mistake of ours'
);
select lives_ok(
  $$ select aivedio.accept_callbacks(array[pg_temp.received(0, null, '{"id": "provider-task", "status": "processing"}')]) $$,
  'headers may be missing'
);
select is(
  (select headers from aivedio.provider_callback_inbox order by id desc limit 1), '{}'::jsonb, 'and are then empty'
);
select is(
  (select count(*) from aivedio.accept_callbacks(array(
    select pg_temp.received(n, jsonb_build_object('webhook-id', 'many-' || n % 50), '{"id": "provider-task", "status": "processing"}')
    from generate_series(1, 200) as n
  )) where is_new),
  50::bigint, 'two hundred deliveries of fifty events make fifty rows'
);

-- Rows are inserted in key order: two batches that share keys wait for each other and do not deadlock.
select results_eq(
  $$ select dedup_key collate "default" from aivedio.provider_callback_inbox where dedup_key like 'many-%' order by id $$,
  $$ select 'many-' || n from generate_series(0, 49) as n order by ('many-' || n) collate "C" $$,
  'ids rise with the keys'
);

-- Parsing alone.
select is(aivedio._parse_body('{"a": 1}'), '{"a": 1}'::jsonb, 'JSON is parsed');
select is(aivedio._parse_body('{"a": '), null, 'broken JSON is nothing');
select is(aivedio._parse_body('{"a": "\u0000"}'), null, 'a NUL is nothing');
select is(aivedio._parse_body(null), null, 'nothing is nothing');
select is(aivedio._parse_body(repeat('[', 200000)), null, 'a nesting without end is nothing');

-- Redaction.
select is(
  aivedio._redact('{"a": {"b": 1, "c": 2}, "d": null, "e": [{"url": "x"}]}', '["$.a.b", "$.d", "$.e[*].url", "$.z"]'),
  '{"a": {"b": "[redacted]", "c": 2}, "d": null, "e": "[redacted]"}'::jsonb,
  'members are blanked, a null and a missing one are left'
);
select is(aivedio._redact(null, '["$.a"]'), null, 'nothing to redact');
select is(aivedio._redact('{"a": 1}', null), '{"a": 1}'::jsonb, 'no paths');
select is(aivedio._redact('[1]', '["$.a"]'), '[1]'::jsonb, 'a payload of another shape');

-- What the edge is told.
select is(
  (select webhook ->> 'event_id_header' from aivedio.read_webhook_profiles() where provider = 'replicate'), 'webhook-id',
  'the webhook edge reads the webhook section'
);
select aivedio.override_provider('lumen', '{"webhook": null}', 'ann', 'it does not call');
select is_empty($$ select provider from aivedio.read_webhook_profiles() where provider = 'lumen' $$, 'a provider that does not call back is left out');

set local role aivedio_webhook;
select lives_ok($$ select aivedio.accept_callbacks('{}') $$, 'the webhook edge may call it');

select finish();
rollback;
