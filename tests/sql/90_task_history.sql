-- Stage 90: a task is found by whatever names it, and its history tells all that is recorded of it, in order.
begin;
\ir support/fixtures.sql
select plan(36);

create function pg_temp.at(p_second integer)
returns void
language sql
as $at$
  select set_config('aivedio.now', ('2026-06-24 03:10:00+00'::timestamptz + p_second * interval '1 second')::text, true);
$at$;

-- A job that meets much of what can go wrong.
select aivedio.create_task(fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'replicate', 'lumen/video-1', '{"prompt": "a private wish"}');
create temp table it as select task.id, task.current_attempt_id as first from aivedio.generation_tasks as task;
select pg_temp.at(1);
select count(*) from aivedio.claim_submits('submitter', 1, 'https://us.example');
select pg_temp.at(2);
select aivedio.settle_submit(
  it.first, 1, '{"kind": "response", "http_status": 201, "body": {"id": "provider-task", "status": "starting"}}'
) from it;
select pg_temp.at(3);
select aivedio.accept_callbacks(array[fixture.delivery('e1', 'task', 'processing')]);
select aivedio.accept_callbacks(array[fixture.delivery('e1', 'task', 'processing')]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select pg_temp.at(4);
select aivedio.accept_callbacks(array[fixture.delivery('e2', 'task', 'processing')]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select pg_temp.at(5);
update aivedio.task_attempts as attempt set next_poll_at = aivedio._clock() from it where attempt.id = it.first;
create temp table polled as select * from aivedio.claim_polls('poller');
select aivedio.settle_poll(polled.attempt_id, polled.lease_token,
  '{"kind": "response", "http_status": 200, "body": {"id": "provider-task", "status": "failed", "error": "secret words of the provider"}}') from polled;
select pg_temp.at(6);
select aivedio.accept_callbacks(array[fixture.delivery('e3', 'task', 'succeeded')]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select pg_temp.at(7);
select aivedio.start_attempt(fixture.id('tenant'), fixture.id('project'), it.id, 'ops@example.com', 'the customer waits') from it;
create temp table again as select task.current_attempt_id as id from aivedio.generation_tasks as task;
update aivedio.task_attempts as attempt
set submit_state = 'accepted', provider_task_id = 'provider-again', status = 'running', known_status = 'running', submitted_at = aivedio._clock()
from again where attempt.id = again.id;
update aivedio.generation_tasks set status = 'running', stage = 'running';
select pg_temp.at(8);
select aivedio.apply_observation(fixture.observation(again.id, 'succeeded', p_outputs => '[{"kind": "video", "url": "https://replicate.delivery/out.mp4"}]')) from again;
select pg_temp.at(9);
select aivedio.open_media(jsonb_build_object('aggregate_id', it.id, 'attempt_id', again.id)) from it, again;
create temp table operation as select * from aivedio.claim_media('studio');
select pg_temp.at(10);
select aivedio.report_media(operation.operation_id, operation.lease_token, '{"status": "running", "progress": 50}') from operation;
select pg_temp.at(11);
select aivedio.accept_callbacks(array[fixture.delivery('e4', 'again', 'succeeded')]);
update aivedio.provider_callback_inbox as inbox set payload = '[]' where inbox.provider_event_id = 'e4';
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select pg_temp.at(12);
select aivedio.own_shard(shard::smallint) from generate_series(0, 7) as shard;
create temp table parked as select sent.id, sent.shard from aivedio.outbox_events as sent order by sent.id limit 1;
select aivedio.mark_published(sent.shard, array[sent.id])
from aivedio.outbox_events as sent where sent.id not in (select parked.id from parked) order by sent.id;
select aivedio.mark_unsent(parked.shard, array[parked.id], 'too large') from parked, generate_series(1, 5);
select pg_temp.at(13);
select aivedio.requeue_outbox(parked.id, 'ops@example.com', 'it is smaller now') from parked;
select pg_temp.at(14);
select aivedio.requeue_callback(inbox.id, 'ops@example.com', 'try again')
from aivedio.provider_callback_inbox as inbox where inbox.provider_event_id = 'e4';
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select pg_temp.at(15);
select aivedio.resolve_case(known.id, 'kept', 'ops@example.com', 'seen') from aivedio.reconciliation_cases as known where known.kind = 'conflict';

create temp table told as
select row_number() over () as place, entry.* from it cross join lateral aivedio.task_history(it.id) as entry;

create function pg_temp.said(p_kind text)
returns text
language sql
as $said$
  select string_agg(coalesce(told.attempt_no || ':', '') || told.what, ' ' order by told.place) from told where told.kind = p_kind;
$said$;

select is((select string_agg(distinct told.kind, ' ' order by told.kind) from told),
  'action attempt callback case event media observation outbox polls submission task', 'all kinds of records are told');
select is((select count(*) from told as one join told as next on next.place = one.place + 1 where next.at < one.at), 0::bigint, 'in the order of time');
select is((select told.kind || ' ' || told.what from told where told.place = 1), 'task created', 'beginning with the task');
select is(pg_temp.said('attempt'), '1:created 1:failed 2:created 2:succeeded', 'attempts begin and end');
select is(pg_temp.said('submission'), '1:accepted 2:accepted', 'submissions have an outcome');
select is((select told.detail ->> 'provider_task_id' from told where told.kind = 'submission' limit 1), 'provider-task', 'and the provider''s id');
select is(pg_temp.said('callback'), '1:done 1:done 1:done 1:repeated 2:dead', 'callbacks: processed, repeated, dead');
select is((select told.detail ->> 'times' from told where told.what = 'repeated'), '1', 'what told nothing new is counted');
select is((select told.detail ->> 'error' from told where told.what = 'dead'), 'VC303', 'what is dead says why');
select is(pg_temp.said('observation'), '1:applied 1:applied 1:conflict 2:applied', 'observations come with verdicts');
select is((select told.detail ->> 'callback' is not null from told where told.what = 'conflict' limit 1), true, 'and with the callback that they come from');
select is(pg_temp.said('polls'), '1:asked', 'polls are counted');
select is((select told.detail ->> 'times' from told where told.kind = 'polls'), '1', 'by attempt');
select is(
  pg_temp.said('event'), '1:created 1:submitting 1:submitted 1:running 1:failed 2:created 2:provider_succeeded 2:processing_media',
  'events are what browsers saw'
);
select is(
  (select array_agg((told.detail ->> 'version')::integer order by told.place) from told where told.kind = 'event'), '{1,2,3,4,5,6,7,8}'::integer[],
  'each version once'
);
select is((select count(*) from told where told.kind = 'outbox' and told.what = 'published'), 7::bigint, 'messages were sent');
select is((select (told.detail ->> 'waited_s')::numeric > 0 from told where told.what = 'published' limit 1), true, 'and how long that took');
select is((select told.what from told where told.kind = 'outbox' and told.detail ->> 'version' = '1'), 'pending', 'one waits again');
select is(pg_temp.said('media'), '2:opened 2:running', 'the media plane works');
select is(pg_temp.said('case'), '1:opened 1:resolved', 'a case was opened and resolved');
select is((select told.detail ->> 'resolution' from told where told.what = 'resolved'), 'kept', 'as something');
select is(pg_temp.said('action'), 'start_attempt requeue_outbox requeue_callback resolve_case', 'and what was done by hand, of all that is the task''s');
select is((select told.detail ->> 'reason' from told where told.what = 'start_attempt'), 'the customer waits', 'with its reason');
select is_empty(
  $$ select * from told where told.detail::text ~* 'https?:|a private wish|secret words|CUDA|payload|headers' $$,
  'no payload, no URL, no text of a provider is among it'
);
select is_empty($$ select aivedio.task_history(fixture.id('nobody')) $$, 'an unknown task has no history');
select is((select count(*) from it cross join lateral aivedio.task_history(it.id, 2) as entry where entry.kind = 'event'), 2::bigint, 'the newest of many');

-- Finding it.
create function pg_temp.found(p_text text)
returns text
language sql
as $found$
  select string_agg(found.found_as, ' ') from aivedio.find_task(p_text) as found join it on it.id = found.task_id;
$found$;
select is((select pg_temp.found(it.id::text) from it), 'task', 'it is found by its id');
select is((select pg_temp.found(' ' || upper(it.first::text)) from it), 'attempt', 'by an attempt''s, however it is written');
select is((select pg_temp.found(known.id::text) from aivedio.reconciliation_cases as known limit 1), 'case', 'by a case''s');
update aivedio.task_attempts as attempt set client_request_id = 'request-again' from again where attempt.id = again.id;
select is(pg_temp.found('request-again'), 'client_request', 'by our request id');
select is(pg_temp.found('provider-again'), 'provider_task', 'by the provider''s');
select is(
  (select pg_temp.found(inbox.id::text) ~ 'callback' from aivedio.provider_callback_inbox as inbox where inbox.provider_event_id = 'e4'), true, 'by a callback'
);
select is((select pg_temp.found(max(event.event_id)::text) is not null from aivedio.task_events as event), true, 'by an event');
select is_empty(
  $$
    select aivedio.find_task(word)
    from (values (null), (''), ('%'), (repeat('9', 16)), ('99999999999999999999'), (fixture.id('no')::text)) as given (word)
  $$,
  'nothing is found by nonsense'
);

-- Reading only its own, however much there is.
insert into aivedio.provider_callback_inbox (provider, dedup_key, received_at, payload_hash, process_status, processed_at, attempt_id)
select 'replicate', 'many ' || n, aivedio._clock(), 'x', 'done', aivedio._clock(), fixture.id('somebody else') from generate_series(1, 5000) as n;
analyze aivedio.provider_callback_inbox;
create function pg_temp.read()
returns bigint
language sql
volatile
as $read$
  select sum(coalesce(stats.seq_tup_read, 0) + coalesce(stats.idx_tup_fetch, 0))::bigint
  from pg_stat_xact_user_tables as stats where stats.schemaname = 'aivedio';
$read$;
create temp table reading as select pg_temp.read() as before;
select count(*) from it cross join lateral aivedio.task_history(it.id);
select cmp_ok((select pg_temp.read() - reading.before from reading), '<', 500::bigint, 'a history reads its own rows');
update reading set before = pg_temp.read();
select count(*) from aivedio.find_task('17');
select cmp_ok((select pg_temp.read() - reading.before from reading), '<', 200::bigint, 'so does a search');

select finish();
rollback;
