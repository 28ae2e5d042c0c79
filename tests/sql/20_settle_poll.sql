-- Stage 20: the answer to a poll changes its task as a callback would; a query that fails says nothing about the job.
begin;
\ir support/fixtures.sql
select plan(79);

create function pg_temp.at(p_after interval)
returns void
language sql
as $at$
  select set_config('aivedio.now', (timestamptz '2026-06-24 03:10:00+00' + p_after)::text, true);
$at$;

-- A running job, claimed for a poll.
create function pg_temp.polled(p_name text, p_status text default 'running', p_deadline timestamptz default null)
returns void
language plpgsql
as $polled$
begin
  perform fixture.task(p_name, p_status);
  perform fixture.attempt(p_name, p_name, case p_status when 'cancel_requested' then 'running' else p_status end, p_provider_task_id => 'p-' || p_name, p_deadline_at => p_deadline);
  perform pg_temp.again(p_name);
end;
$polled$;

-- Due once more, and claimed.
create function pg_temp.again(p_name text)
returns void
language sql
as $again$
  update aivedio.task_attempts as attempt
  set next_poll_at = aivedio._clock(), poll_lease_until = aivedio._clock() + interval '1 minute', lease_token = attempt.lease_token + 1
  where attempt.id = fixture.id(p_name);
$again$;

create function pg_temp.settle(p_name text, p_outcome jsonb, p_token bigint default null)
returns text
language sql
as $settle$
  select concat_ws(' ', answer.verdict, answer.status, case when answer.event_id is not null then 'event' end)
  from aivedio.settle_poll(
    fixture.id(p_name), coalesce(p_token, (select attempt.lease_token from aivedio.task_attempts as attempt where attempt.id = fixture.id(p_name))), p_outcome
  ) as answer;
$settle$;

create function pg_temp.answer(p_body jsonb, p_status integer default 200)
returns jsonb
language sql
as $answer$
  select jsonb_build_object('kind', 'response', 'http_status', p_status, 'body', '{"id": "p"}'::jsonb || p_body);
$answer$;

-- Whether the next poll lies between so many seconds from now.
create function pg_temp.next_within(p_name text, p_low numeric, p_high numeric)
returns boolean
language sql
as $next_within$
  select attempt.next_poll_at - aivedio._clock() between make_interval(secs => p_low) and make_interval(secs => p_high)
  from aivedio.task_attempts as attempt
  where attempt.id = fixture.id(p_name);
$next_within$;

create function pg_temp.counts(p_name text)
returns text
language sql
as $counts$
  select format('polls %s unchanged %s failures %s malformed %s', attempt.poll_count, attempt.unchanged_polls, attempt.poll_failures, attempt.malformed_polls)
  from aivedio.task_attempts as attempt
  where attempt.id = fixture.id(p_name);
$counts$;

-- Observations.
select pg_temp.polled('a', 'submitted');
select is(pg_temp.settle('a', pg_temp.answer('{"status": "starting"}')), 'applied queued event', 'queued');
select is(pg_temp.next_within('a', 8, 36), true, 'a queued job is asked rarely');
select is(pg_temp.settle('a', pg_temp.answer('{"status": "processing"}')), 'duplicate queued', 'the same answer twice is one: the lease is gone');
select pg_temp.again('a');
select is(pg_temp.settle('a', pg_temp.answer('{"status": "processing", "logs": "30%|"}')), 'applied running event', 'running');
select is(pg_temp.next_within('a', 4, 18), true, 'a running job more often');
select pg_temp.again('a');
select is(pg_temp.settle('a', pg_temp.answer('{"status": "processing", "logs": "30%|"}')), 'duplicate running', 'nothing new');
select is(pg_temp.counts('a'), 'polls 3 unchanged 1 failures 0 malformed 0', 'is counted');
select is((select count(*) from aivedio.observations where source = 'poll'), 2::bigint, 'and not stored');
select pg_temp.again('a');
select is(
  pg_temp.settle('a', pg_temp.answer('{"status": "succeeded", "output": ["https://replicate.delivery/a.mp4"], "completed_at": "2026-06-24T03:09:30Z"}')),
  'applied provider_succeeded event', 'success'
);
select is((select next_poll_at from aivedio.task_attempts where id = fixture.id('a')), null, 'what is over is never due');
select results_eq(
  $$ select url, expires_at from aivedio.attempt_outputs where attempt_id = fixture.id('a') $$,
  $$ values ('https://replicate.delivery/a.mp4', timestamptz '2026-06-24 04:09:30Z') $$,
  'S7: the output is kept with the state'
);
select results_eq(
  $$ select source, poll.trace_id, poll.payload_hash is not null from aivedio.observations as poll where poll.task_id = fixture.id('a') and verdict = 'applied' order by id desc limit 1 $$,
  $$ values ('poll', 'trace-a', true) $$, 'the ledger has it'
);

-- S7: a success is believed with its output only.
select pg_temp.polled('empty');
select is(pg_temp.settle('empty', pg_temp.answer('{"status": "succeeded", "output": null}')), 'duplicate running', 'S7: a success without output is asked about again');
select is(pg_temp.counts('empty'), 'polls 1 unchanged 0 failures 1 malformed 1', 'S7: and counts as an answer that makes no sense');
delete from aivedio.alarms;

-- P10: fencing.
select pg_temp.polled('b');
select pg_temp.again('b');
select is(pg_temp.settle('b', pg_temp.answer('{"status": "succeeded", "output": "https://x.example/1"}'), 1), 'stale_attempt running', 'P10: a worker that lost its lease is answered');
select is((select status from aivedio.generation_tasks where id = fixture.id('b')), 'running', 'P10: and ignored');
select is((select poll_lease_until is not null from aivedio.task_attempts where id = fixture.id('b')), true, 'P10: the new worker''s lease stands');
select is((select verdict from aivedio.settle_poll(fixture.id('nobody'), 1, '{"kind": "timeout"}')), 'orphan', 'an unknown attempt is no exception');

-- A callback was faster: S1.
select aivedio.accept_callbacks(array[row(
  0, 'replicate', '{"webhook-id": "m1"}', '{"id": "p-b", "status": "succeeded", "output": "https://x.example/1"}', '\x00', 'current', true, null, null, null
)::aivedio.received_callback]);
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
select is(pg_temp.settle('b', pg_temp.answer('{"status": "succeeded", "output": "https://x.example/1"}')), 'duplicate provider_succeeded', 'S1: the poll that comes second is a duplicate');
select is((select count(*) from aivedio.task_events where task_id = fixture.id('b') and public_payload ->> 'status' = 'provider_succeeded'), 1::bigint, 'S1: one event');
select results_eq(
  $$ select source, verdict from aivedio.observations where task_id = fixture.id('b') order by id $$,
  $$ values ('webhook', 'applied'), ('poll', 'duplicate') $$, 'S1: the ledger knows who won'
);
select is((select next_poll_at from aivedio.task_attempts where id = fixture.id('b')), null, 'and polling is over');

-- P1: a word that we do not know.
select pg_temp.polled('c');
select is(pg_temp.settle('c', pg_temp.answer('{"status": "resting"}')), 'unknown_word running', 'P1: an unknown word changes nothing');
select is(pg_temp.counts('c'), 'polls 1 unchanged 0 failures 1 malformed 0', 'P1: it counts as a poll that told nothing, so it is bounded');
select results_eq($$ select subject from aivedio.alarms where kind = 'unknown_word' $$, $$ values ('replicate:resting') $$, 'P1: it is alarmed');

-- Faults of the provider or the network.
select pg_temp.polled('d');
select is(pg_temp.settle('d', '{"kind": "timeout", "error": "ReadTimeout"}'), 'duplicate running', '12.7.8: a query that times out changes nothing');
select is(pg_temp.counts('d'), 'polls 1 unchanged 0 failures 1 malformed 0', 'it is counted');
select is(pg_temp.next_within('d', 8, 36), true, 'the next one waits twice as long');
select pg_temp.again('d');
select pg_temp.settle('d', pg_temp.answer('{}', 503));
select pg_temp.again('d');
select pg_temp.settle('d', '{"kind": "network", "error": "ConnectError"}');
select is(pg_temp.counts('d'), 'polls 3 unchanged 0 failures 3 malformed 0', 'server errors and network errors alike');
select is(pg_temp.next_within('d', 32, 144), true, 'after three, eight times as long');
select pg_temp.again('d');
select pg_temp.settle('d', pg_temp.answer('{"status": "processing"}'));
select is(pg_temp.counts('d'), 'polls 4 unchanged 1 failures 0 malformed 0', 'one good answer, and all is forgotten');

-- P4: answers that make no sense.
select pg_temp.polled('e');
select pg_temp.settle('e', outcome.value) || coalesce(nullif(pg_temp.again('e')::text, ''), '')
from (values
  (1, '{"kind": "malformed", "http_status": 200, "sample": "<html>"}'::jsonb),
  (2, '{"kind": "too_large", "http_status": 200}'),
  (3, '{"kind": "response", "http_status": 200, "body": []}'),
  (4, '{"kind": "response", "http_status": 200, "body": null}'),
  (5, '{"kind": "response", "http_status": 200, "body": {"id": "p"}}'),
  (6, '{"kind": "surprise"}'),
  (7, '{}')
) as outcome (place, value);
select is(pg_temp.counts('e'), 'polls 7 unchanged 0 failures 7 malformed 7', 'P4: no JSON, too much, no object, no status, no kind: each is a poll that failed');
select results_eq(
  $$ select subject, count from aivedio.alarms where kind = 'poll_malformed' $$, $$ values ('replicate', 7::bigint) $$, 'P4: alarmed'
);
select is((select status from aivedio.generation_tasks where id = fixture.id('e')), 'running', 'P4: seven are not yet enough');
select is(
  pg_temp.settle('e', pg_temp.answer(jsonb_build_object('status', 'succeeded', 'output', (select jsonb_agg('https://x.example/' || n) from generate_series(1, 10000) as n)))),
  'applied provider_status_unknown event', 'ten thousand outputs make no sense either; the eighth failure in a row: we do not know'
);
select is((select detail ->> 'detail' from aivedio.alarms where kind = 'poll_malformed'), 'too many outputs', 'the alarm has a sample');
select is(pg_temp.next_within('e', 48, 360), true, 'it is asked less often');
select results_eq($$ select subject from aivedio.alarms where kind = 'provider_status_unknown' $$, $$ values ('replicate') $$, 'it is alarmed');
select pg_temp.again('e');
select is(pg_temp.settle('e', '{"kind": "timeout", "error": "ReadTimeout"}'), 'duplicate provider_status_unknown', 'once unknown, it stays so without more events');
select pg_temp.again('e');
select is(pg_temp.settle('e', pg_temp.answer('{"status": "starting"}')), 'applied running event', 'any valid observation leads out, never lower than before');
select is(pg_temp.counts('e'), 'polls 10 unchanged 0 failures 0 malformed 0', 'and the counts begin anew');

-- Unknown reached from a cancel request returns there.
select pg_temp.polled('f', 'cancel_requested');
update aivedio.task_attempts set poll_failures = 7 where id = fixture.id('f');
select is(pg_temp.settle('f', '{"kind": "timeout"}'), 'applied provider_status_unknown event', 'also a job that should be canceled can get lost');
select pg_temp.again('f');
select is(pg_temp.settle('f', pg_temp.answer('{"status": "processing"}')), 'applied cancel_requested event', 'and comes back as what it was');

-- P3: too many requests is not the job's failure.
select pg_temp.polled('g');
select aivedio._spend_quotas(aivedio._clock(), array[fixture.id('g')]);
select is(pg_temp.settle('g', '{"kind": "response", "http_status": 429, "retry_after_s": 40, "body": null}'), 'duplicate running', '429');
select is(pg_temp.counts('g'), 'polls 1 unchanged 0 failures 0 malformed 0', 'the attempt has not failed');
select results_eq(
  $$ select blocked_until, refusals, rate from aivedio.poll_quotas where level = 'provider' and key = 'replicate' $$,
  $$ values (aivedio._clock() + interval '40 seconds', 1, 25::double precision) $$,
  'the whole bucket waits as long as asked, and its rate is halved'
);
select is(pg_temp.next_within('g', 40, 42), true, 'the attempt waits with it');
select pg_temp.again('g');
select pg_temp.settle('g', '{"kind": "response", "http_status": 429, "body": null}');
select results_eq(
  $$ select blocked_until, refusals, rate from aivedio.poll_quotas where level = 'provider' and key = 'replicate' $$,
  $$ values (aivedio._clock() + interval '40 seconds', 1, 25::double precision) $$,
  'an answer to another poll of the same batch is the same refusal'
);
update aivedio.task_attempts set next_poll_at = aivedio._clock(), poll_lease_until = null where id = fixture.id('g');
select is_empty($$ select * from aivedio.claim_polls('w', 10) $$, 'a blocked bucket hands out nothing');
select pg_temp.at('50 seconds');
select pg_temp.again('g');
select pg_temp.settle('g', '{"kind": "response", "http_status": 429, "body": null}');
select results_eq(
  $$ select blocked_until - aivedio._clock() between interval '8 s' and interval '12 s', refusals, rate from aivedio.poll_quotas where level = 'provider' and key = 'replicate' $$,
  $$ values (true, 2, 12.5::double precision) $$,
  'without Retry-After the wait doubles with each refusal in a row'
);
select pg_temp.at('80 seconds');
select pg_temp.again('g');
select pg_temp.settle('g', pg_temp.answer('{"status": "processing"}'));
select is((select refusals from aivedio.poll_quotas where level = 'provider' and key = 'replicate'), 0, 'a good answer ends the row of refusals');
select pg_temp.at('180 seconds');
select aivedio._spend_quotas(aivedio._clock(), array[fixture.id('g')]);
select is((select rate from aivedio.poll_quotas where level = 'provider' and key = 'replicate'), 50::double precision, 'and the rate grows back in time');
select pg_temp.at('0');

-- 404.
select pg_temp.polled('h');
select pg_temp.settle('h', pg_temp.answer('{}', 404));
select is(pg_temp.next_within('h', 1.6, 6), true, 'a fresh job that is not found is asked again soon');
select is_empty($$ select 1 from aivedio.reconciliation_cases where kind = 'not_found' $$, 'that is no case');
select is(pg_temp.counts('h'), 'polls 1 unchanged 0 failures 0 malformed 0', 'and no failure: its status is not unknown before the grace is over');
update aivedio.task_attempts set submitted_at = aivedio._clock() - interval '61 seconds' where id = fixture.id('h');
select pg_temp.again('h');
select pg_temp.settle('h', pg_temp.answer('{}', 404));
select pg_temp.again('h');
select pg_temp.settle('h', pg_temp.answer('{}', 404));
select results_eq(
  $$ select state, jsonb_array_length(evidence) from aivedio.reconciliation_cases where kind = 'not_found' and subject = fixture.id('h')::text $$,
  $$ values ('open', 1) $$, 'after the grace it is one case'
);
select is(pg_temp.next_within('h', 480, 720), true, 'and is asked rarely');
select is((select status from aivedio.generation_tasks where id = fixture.id('h')), 'running', 'the task goes on');

-- 401 and 403: our credential.
select pg_temp.polled('i');
select is(pg_temp.settle('i', pg_temp.answer('{}', 403)), 'duplicate running', '403');
select is(pg_temp.counts('i'), 'polls 1 unchanged 0 failures 0 malformed 0', 'the attempt has not failed');
select is((select state || ' ' || reason from aivedio.provider_circuits where provider = 'replicate'), 'open credential_refused', 'the credential''s circuit opens');
select is(pg_temp.next_within('i', 24, 38), true, 'no hot retry');
select is((select count(*) from aivedio.alarms where kind = 'credential_refused'), 1::bigint, 'it is alarmed');
select pg_temp.again('i');
select pg_temp.settle('i', pg_temp.answer('{"status": "processing"}'));
select is((select state from aivedio.provider_circuits where provider = 'replicate'), 'closed', 'a good answer closes it');
select pg_temp.again('i');
select is(pg_temp.settle('i', '{"kind": "not_sent", "error": "NoSecret"}'), 'duplicate running', 'a secret that is missing where polls are made');
select is(pg_temp.counts('i'), 'polls 3 unchanged 1 failures 0 malformed 0', 'is no failure of the attempt, however long it lasts');
select is((select state || ' ' || reason from aivedio.provider_circuits where provider = 'replicate'), 'open credential_refused', 'but of the credential');
select pg_temp.again('i');
select pg_temp.settle('i', pg_temp.answer('{"status": "processing"}'));

-- Many faults in a row open the circuit, a failed probe opens it for longer.
select pg_temp.polled('j' || n) from generate_series(1, 10) as n;
select pg_temp.settle('j' || n, '{"kind": "timeout"}') from generate_series(1, 9) as n;
select is((select state || ' ' || failures from aivedio.provider_circuits where provider = 'replicate'), 'closed 9', 'nine faults in a row do not open a circuit');
select pg_temp.settle('j10', '{"kind": "timeout"}');
select is((select state from aivedio.provider_circuits where provider = 'replicate'), 'open', 'the tenth does');
select is((select count(*) from aivedio.alarms where kind = 'circuit_open'), 1::bigint, 'and is alarmed');
update aivedio.provider_circuits set state = 'half_open';
select pg_temp.again('j1');
select pg_temp.settle('j1', '{"kind": "timeout"}');
select is((select state || ' ' || openings from aivedio.provider_circuits where provider = 'replicate'), 'open 2', 'a fault that answers a probe opens it at once');
select is((select retry_at - aivedio._clock() between interval '48 s' and interval '72 s' from aivedio.provider_circuits), true, 'for twice as long');

-- P7: overdue.
select pg_temp.polled('k', p_deadline => aivedio._clock() - interval '1 second');
select is(pg_temp.settle('k', pg_temp.answer('{"status": "processing"}')), 'duplicate running', 'P7: an overdue job is not failed');
select is(pg_temp.next_within('k', 480, 720), true, 'P7: it is asked rarely');
select is((select count(*) from aivedio.reconciliation_cases where kind = 'overdue' and subject = fixture.id('k')::text), 1::bigint, 'P7: it is a case, and alarmed');
select pg_temp.again('k');
select is(pg_temp.settle('k', pg_temp.answer('{"status": "succeeded", "output": "https://x.example/late"}')), 'applied provider_succeeded event', 'P7: a late result counts');

-- An open conflict is looked at again, slowly; nothing else that is over.
select pg_temp.again('k');
select pg_temp.settle('k', pg_temp.answer('{"status": "failed", "error": "no"}'));
select is(pg_temp.next_within('k', 1440, 26000), true, 'a conflict is looked at again, rarely');
select results_eq($$ select status from aivedio.generation_tasks where id = fixture.id('k') $$, $$ values ('provider_succeeded') $$, 'the first end stands');
update aivedio.reconciliation_cases set state = 'resolved', resolved_at = aivedio._clock(), resolution = 'kept', resolved_by = 'ann' where kind = 'conflict';
select pg_temp.again('k');
select pg_temp.settle('k', '{"kind": "timeout"}');
select is((select next_poll_at from aivedio.task_attempts where id = fixture.id('k')), null, 'a resolved one is not, whatever the last answer was');

select finish();
rollback;
