-- Stage 10: process_inbox applies callbacks in order, exactly once, and leaves an explanation on every row.
begin;
\ir support/fixtures.sql
select plan(46);

-- Accepts deliveries and has them processed; answers the batch.
create function pg_temp.deliver(p_callbacks aivedio.received_callback[], p_shards smallint[] default '{0,1,2,3,4,5,6,7}')
returns aivedio.inbox_batch
language plpgsql
as $deliver$
begin
  perform aivedio.accept_callbacks(p_callbacks);
  return aivedio.process_inbox(p_shards);
end;
$deliver$;

-- One delivery, with a body of one's own, by a token.
create function pg_temp.body(p_event text, p_body jsonb, p_token text default null, p_signed boolean default true, p_provider text default 'replicate')
returns aivedio.received_callback
language sql
as $body$
  select row(
    0, p_provider, jsonb_build_object('webhook-id', p_event), p_body::text, sha256(convert_to(p_body::text, 'UTF8')), 'current',
    p_signed, case when p_token is not null then sha256(convert_to(p_token, 'UTF8')) end, 'trace-' || p_event, null
  )::aivedio.received_callback;
$body$;

create function pg_temp.status(p_name text)
returns text
language sql
as $status$
  select task.status || ' v' || task.version from aivedio.generation_tasks as task where task.id = fixture.id(p_name);
$status$;

create function pg_temp.row(p_key text)
returns text
language sql
as $row$
  select concat_ws(' ', inbox.process_status, inbox.verdict, inbox.last_error_code)
  from aivedio.provider_callback_inbox as inbox
  where inbox.dedup_key = p_key;
$row$;

select fixture.job('task');

-- Nothing to do.
select results_eq(
  $$ select * from aivedio.process_inbox('{0,1,2,3,4,5,6,7}') $$,
  $$ values (0, 0, 0, 0, 0, '{}'::smallint[]) $$,
  'an empty inbox is no work'
);

-- A callback changes its task.
select results_eq(
  $$ select * from pg_temp.deliver(array[fixture.delivery('m1')]) $$,
  $$ values (1, 1, 0, 0, 0, '{}'::smallint[]) $$,
  'one callback is claimed and applied'
);
select is(pg_temp.status('task'), 'running v2', 'its task runs');
select results_eq(
  $$ select process_status, verdict, attempt_id, processed_at, retry_count from aivedio.provider_callback_inbox $$,
  $$ values ('done', 'applied', fixture.id('attempt of task'), aivedio._clock(), 0) $$,
  'its row says what became of it'
);
select results_eq(
  $$ select source, verdict, provider_word, inbox_id, trace_id, lag from aivedio.observations $$,
  $$ select 'webhook', 'applied', 'processing', id, 'trace-m1', interval '1 minute' from aivedio.provider_callback_inbox $$,
  'the ledger knows where it came from, and how late'
);
select is((pg_temp.deliver(array[fixture.delivery('m1')])).claimed, 0, 'W10: a repeat of the delivery is no work');
select is((pg_temp.deliver(array[fixture.delivery('m2')])).ignored, 1, 'a second delivery of the same news is ignored');
select is(pg_temp.row('m2'), 'done duplicate', 'and says so');
select is(pg_temp.status('task'), 'running v2', 'nothing changed');

-- Success: outputs are kept privately, the payload loses them.
select is((pg_temp.deliver(array[fixture.delivery('m3', p_status => 'succeeded')])).applied, 1, 'success is applied');
select is(pg_temp.status('task'), 'provider_succeeded v3', 'the provider has succeeded');
select results_eq(
  $$ select ordinal, kind, url, expires_at, created_at from aivedio.attempt_outputs where attempt_id = fixture.id('attempt of task') $$,
  $$ values (1::smallint, 'video', 'https://replicate.delivery/out.mp4', timestamptz '2026-06-24 04:09:00Z', aivedio._clock()) $$,
  'S7: the output is there when the state says so; its hour began at the provider''s earliest word'
);
select is((select payload ->> 'output' from aivedio.provider_callback_inbox where dedup_key = 'm3'), '[redacted]', 'the row keeps no output URL');
select is(
  (select count(*) from aivedio.task_events where public_payload::text like '%replicate.delivery%'), 0::bigint, 'nor does an event'
);

-- S2: news from before the end.
select is((pg_temp.deliver(array[fixture.delivery('m4')])).ignored, 1, 'S2: a late "processing" is ignored');
select is(pg_temp.row('m4'), 'done after_terminal', 'S2: with its verdict');
select is(pg_temp.status('task'), 'provider_succeeded v3', 'S2: the task did not go back');
select is((pg_temp.deliver(array[fixture.delivery('m5', p_status => 'failed')])).ignored, 1, 'a contradictory end is not applied');
select is(pg_temp.row('m5'), 'done conflict', 'it is a conflict');
select is((select count(*) from aivedio.reconciliation_cases where kind = 'conflict' and state = 'open'), 1::bigint, 'and a case');

-- A fresh URL for an output that is still wanted; none once it was purged.
select pg_temp.deliver(array[pg_temp.body('m6', '{"id": "provider-task", "status": "succeeded", "output": "https://replicate.delivery/new.mp4"}')]);
select is((select url from aivedio.attempt_outputs where attempt_id = fixture.id('attempt of task')), 'https://replicate.delivery/new.mp4', 'a repeat brings the fresh URL');
update aivedio.attempt_outputs set url = null, purged_at = aivedio._clock();
select pg_temp.deliver(array[fixture.delivery('m7', p_status => 'succeeded')]);
select is((select url from aivedio.attempt_outputs where attempt_id = fixture.id('attempt of task')), null, 'after publication none comes back');

-- One batch, in the order of arrival.
select fixture.job('second');
select results_eq(
  $$ select claimed, applied, ignored from pg_temp.deliver(array[
    pg_temp.body('c', '{"id": "provider-second", "status": "processing", "logs": "10%|"}'),
    pg_temp.body('d', '{"id": "provider-second", "status": "succeeded", "output": "https://replicate.delivery/s.mp4"}'),
    pg_temp.body('e', '{"id": "provider-second", "status": "starting"}')
  ]) $$,
  $$ values (3, 2, 1) $$,
  'a batch is applied in order of id'
);
select is(pg_temp.status('second'), 'provider_succeeded v3', 'with one event for each change');

-- A word that the profile does not know.
select fixture.job('third');
select is((pg_temp.deliver(array[fixture.delivery('w1', 'third', 'resting')])).ignored, 1, 'P1: an unknown word is no error');
select is(pg_temp.row('w1'), 'done unknown_word', 'P1: it has its verdict');
select is(pg_temp.status('third'), 'submitted v1', 'P1: and changes nothing');
select results_eq(
  $$ select kind, subject from aivedio.alarms where kind = 'unknown_word' $$, $$ values ('unknown_word', 'replicate:resting') $$, 'P1: it is alarmed'
);

-- W23: the token of the URL decides, also where the provider names another id.
select fixture.task('fourth');
select fixture.attempt('fourth', 'fourth attempt', p_provider_task_id => 'submitted-id', p_token => 'fourth token');
select is((pg_temp.deliver(array[pg_temp.body('t1', '{"id": "retried-id", "status": "processing"}', 'fourth token')])).applied, 1, 'W23: mapped by token');
select is(pg_temp.status('fourth'), 'running v2', 'W23: to the right task');

-- Clues that contradict each other.
select is(
  (pg_temp.deliver(array[pg_temp.body('t2', '{"id": "provider-third", "status": "failed"}', 'fourth token')])).dead, 1, 'token and id name different attempts: nothing is applied'
);
select is(pg_temp.row('t2'), 'dead mapping', 'the row waits for a person');
select is(pg_temp.status('third') || ', ' || pg_temp.status('fourth'), 'submitted v1, running v2', 'neither task changed');
select results_eq(
  $$ select kind, evidence #> '{0,attempts}' @> jsonb_build_array(fixture.id('attempt of third'), fixture.id('fourth attempt')) from aivedio.reconciliation_cases where kind = 'mapping' $$,
  $$ values ('mapping', true) $$,
  'the case names both'
);

-- Our own id, where a provider echoes it.
select aivedio.define_provider('lumen', (
  select jsonb_set(profile, '{fields,client_request_id}', '"$.tag"') from aivedio.providers where name = 'replicate'
));
select fixture.task('fifth', p_provider => 'lumen');
select fixture.attempt('fifth', 'fifth attempt', p_status => 'submitting');
update aivedio.generation_tasks set status = 'submitting', stage = 'submitting' where id = fixture.id('fifth');
select is(
  (pg_temp.deliver(array[pg_temp.body('l1', '{"id": "early", "tag": "request-fifth attempt", "status": "processing"}', p_provider => 'lumen')])).applied,
  1, '12.7.4: a callback that overtakes the answer to the submission is mapped by our own id'
);
select is(pg_temp.status('fifth'), 'running v2', '12.7.4: and applied');
select results_eq(
  $$ select provider_task_id, submit_state, next_poll_at > aivedio._clock() from aivedio.task_attempts where id = fixture.id('fifth attempt') $$,
  $$ values ('early' collate "C", 'accepted', true) $$,
  '12.7.4: the provider''s id is known from it, and polling begins'
);

-- A success without the output that the profile requires only hints.
select fixture.job('sixth');
select is((pg_temp.deliver(array[pg_temp.body('h1', '{"id": "provider-sixth", "status": "succeeded", "output": null}')])).ignored, 1, 'a success without output is not believed');
select is(pg_temp.row('h1'), 'done hint', 'it is a hint');
select results_eq(
  $$ select next_poll_at, hinted_at from aivedio.task_attempts where id = fixture.id('attempt of sixth') $$,
  $$ values (aivedio._clock(), aivedio._clock()) $$,
  'the poll is due now'
);
select is(pg_temp.status('sixth'), 'submitted v1', 'and will tell');

-- The limit is kept; what is left over is found by the next call.
select fixture.job('seventh');
select aivedio.accept_callbacks(array(select fixture.delivery('n' || n, 'seventh') from generate_series(1, 5) as n));
select is((aivedio.process_inbox('{0,1,2,3,4,5,6,7}', 3)).claimed, 3, 'no more than the limit');
select is((aivedio.process_inbox('{0,1,2,3,4,5,6,7}', 3)).claimed, 2, 'then the rest');

-- Shards: a worker takes its own, and names the others that have work.
select fixture.job('eighth', p_project => 'other project');
select aivedio.accept_callbacks(array[fixture.delivery('s1', 'eighth')]);
select results_eq(
  format('select claimed, foreign_shards from aivedio.process_inbox(%L)', array(select n from generate_series(0, 7) as n where n <> aivedio._shard(fixture.id('other project')))),
  format('values (0, %L::smallint[])', array[aivedio._shard(fixture.id('other project'))]),
  'a callback of another shard is left to its owner, who is named'
);
select is((aivedio.process_inbox(array[aivedio._shard(fixture.id('other project'))])).applied, 1, 'the owner applies it');

set local role aivedio_inbox;
select lives_ok($$ select aivedio.process_inbox('{0}') $$, 'the inbox process may call it');

select finish();
rollback;
