-- Stage 50: the trace id of the request that created a task is on everything that follows from it.
begin;
\ir support/fixtures.sql
select plan(13);

create temporary table made as
select (task).* from aivedio.create_task(
  fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'replicate', 'lumen/video-1', '{"prompt": "fog"}', 'key', 'trace-of-the-request'
) as task;

select is((select task.trace_id from aivedio.generation_tasks as task), 'trace-of-the-request', 'the task has it');
select is((select attempt.trace_id from aivedio.task_attempts as attempt), 'trace-of-the-request', 'the attempt has it');
select is(
  (select request.trace_id from aivedio.claim_submits('worker', 1, 'https://us.example') as request), 'trace-of-the-request',
  'who submits it can log it'
);
select aivedio.settle_submit(made.attempt_id, 1, '{"kind": "response", "http_status": 201, "body": {"id": "job"}}') from made;
update aivedio.task_attempts set next_poll_at = aivedio._clock();
select is((select request.trace_id from aivedio.claim_polls('worker') as request), 'trace-of-the-request', 'who polls it can log it');
select aivedio.settle_poll(
  made.attempt_id, 1, '{"kind": "response", "http_status": 200, "body": {"id": "job", "status": "succeeded", "output": "https://x.example/a.mp4"}}'
) from made;
select is(
  (select seen.trace_id from aivedio.observations as seen where seen.source = 'poll'), 'trace-of-the-request', 'the ledger has it'
);
select is_empty(
  $$ select 1 from aivedio.outbox_events as message where message.payload ->> 'trace_id' is distinct from 'trace-of-the-request' $$,
  'each message has it'
);
select is(
  aivedio.open_media((select message.payload from aivedio.outbox_events as message where message.payload ->> 'status' = 'provider_succeeded')), 'opened',
  'the message opens an operation'
);
select is((select task.trace_id from aivedio.claim_media('studio') as task), 'trace-of-the-request', 'which has it');
select is((aivedio.why_waiting(made.task_id) #>> '{task,trace_id}'), 'trace-of-the-request', 'an operator finds it') from made;

-- A failure tells it to the user, who tells it to support.
select (aivedio.report_media(operation.id, operation.lease_token, '{"failed": "codec", "retry": false}')).verdict from aivedio.media_operations as operation;
select is(
  (select event.public_payload #>> '{error,trace_id}' from aivedio.task_events as event order by event.event_id desc limit 1), 'trace-of-the-request',
  'the public error names it'
);
-- A callback has a trace of its own; the ledger keeps it, so that the delivery is found as well.
select fixture.job('called', 'running');
select aivedio.accept_callbacks(array[fixture.delivery('e1', 'called')]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
update aivedio.generation_tasks set status = 'queued', stage = 'queued' where id = fixture.id('called');
select aivedio.accept_callbacks(array[fixture.delivery('e2', 'called')]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select is(
  (select seen.trace_id from aivedio.observations as seen where seen.task_id = fixture.id('called')), 'trace-e2', 'the delivery''s own trace is in the ledger'
);
-- Commands leave theirs in the audit.
select (aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id('called'), fixture.id('user'), 'trace-of-the-cancel')).verdict;
select is(
  (select action.detail ->> 'trace_id' from aivedio.operator_actions as action where action.action = 'request_cancel'), 'trace-of-the-cancel', 'a cancellation''s is audited'
);
select (aivedio.start_attempt(fixture.id('tenant'), fixture.id('project'), made.task_id, 'user', 'again', 'k', 'trace-of-the-retry')).verdict from made;
select is(
  (select action.detail ->> 'trace_id' from aivedio.operator_actions as action where action.action = 'start_attempt'), 'trace-of-the-retry', 'so is a retry''s'
);

select finish();
rollback;
