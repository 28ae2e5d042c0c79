-- Stage 90: what waits for a decision, providers, and what was done by hand, as rows that an operators' page shows.
begin;
\ir support/fixtures.sql
select plan(34);

-- Cases, and what each may be resolved as: what resolve_case then accepts.
select fixture.job(kind || ' over', 'failed'), fixture.job(kind || ' open', 'running')
from unnest(array['conflict', 'stale_success', 'submit_unknown', 'lost_submit', 'overdue', 'orphan', 'mapping', 'billing', 'not_found']) as kind;
select fixture.job('late', 'failed', p_attempt_status => 'succeeded');
select fixture.attempt('late', 'second of late', 'failed', p_provider_task_id => 'second');
select aivedio._open_case(
  split_part(task.name, ' ', 1), attempt.id::text, attempt, null, '{"why": "a test"}'
)
from (
  select kind || age as name from unnest(array['conflict', 'stale_success', 'submit_unknown', 'lost_submit', 'overdue', 'orphan', 'mapping', 'billing', 'not_found']) as kind
  cross join unnest(array[' over', ' open']) as age
) as task
join aivedio.task_attempts as attempt on attempt.task_id = fixture.id(task.name)
order by task.name;
set local aivedio.now = '2026-06-24 03:11:00+00';
select aivedio._open_case('stale_success', attempt.id::text, attempt, null, '{"why": "late"}')
from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of late');

select is((select count(*) from aivedio.list_cases()), 19::bigint, 'all open cases are listed');
select is((select known.task_id from aivedio.list_cases() as known limit 1), fixture.id('late'), 'the newest first');
select is((select known.evidence #>> '{0,why}' from aivedio.list_cases(p_limit => 1) as known), 'late', 'with their evidence');
select is((select count(*) from aivedio.list_cases('overdue')), 2::bigint, 'those of one kind alone');
select is((select count(*) from aivedio.list_cases('dancing')), 0::bigint, 'a kind that there is not has none');
select is((select known.resolutions from aivedio.list_cases(p_limit => 1) as known), '{kept,adopted}'::text[], 'a late success may be adopted');
select results_eq(
  $$
    select known.kind, array_agg(distinct array_to_string(known.resolutions, ' ') order by array_to_string(known.resolutions, ' '))
    from aivedio.list_cases() as known where known.task_id <> fixture.id('late') group by known.kind order by known.kind
  $$,
  $$
    values ('billing', '{kept}'::text[]), ('conflict', '{kept}'), ('lost_submit', '{failed,kept failed}'), ('mapping', '{kept}'),
      ('not_found', '{failed,kept failed}'), ('orphan', '{kept}'), ('overdue', '{kept failed}'), ('stale_success', '{kept}'),
      ('submit_unknown', '{failed,kept failed}')
  $$,
  'the others as fits their kind, and what is over'
);

create function pg_temp.refused(p_case uuid, p_resolution text)
returns boolean
language plpgsql
as $refused$
begin
  perform aivedio.resolve_case(p_case, p_resolution, 'ops', 'a test');
  raise exception 'taken back' using errcode = 'VC909';
exception
  when sqlstate 'VC909' then return false;
  when sqlstate 'VC904' then return true;
end;
$refused$;
select is_empty(
  $$
    select known.kind, way, known.resolutions
    from aivedio.list_cases() as known cross join unnest(array['kept', 'failed']) as way
    where pg_temp.refused(known.id, way) = (way = any (known.resolutions))
  $$,
  'resolve_case takes what is listed, and nothing else'
);
select aivedio.adopt_attempt(fixture.id('tenant'), fixture.id('project'), fixture.id('late'), fixture.id('attempt of late'), 'ops', 'wanted');
select is((select count(*) from aivedio.list_cases() as known where known.task_id = fixture.id('late')), 0::bigint, 'what was adopted is listed no more');
select aivedio.resolve_case(known.id, 'kept', 'ops', 'seen') from aivedio.list_cases('billing') as known limit 1;
select is((select count(*) from aivedio.list_cases('billing')), 1::bigint, 'what is resolved is listed no more');

-- Dead callbacks.
select aivedio.accept_callbacks(array[fixture.delivery('d1', 'early', 'processing')]);
select aivedio.accept_callbacks(array[fixture.delivery('d2', 'conflict open', 'processing')]);
update aivedio.provider_callback_inbox as inbox set retry_count = 100 where inbox.provider_event_id = 'd1';
update aivedio.provider_callback_inbox as inbox set payload = '[]' where inbox.provider_event_id = 'd2';
select aivedio.process_inbox('{0,1,2,3,4,5,6,7}');
create temp table dead as select * from aivedio.list_dead_callbacks();
select is((select array_agg(dead.error order by dead.id desc) from dead), '{VC303,orphan}'::text[], 'what ended dead is listed, newest first, with why');
select is((select dead.task_id from dead where dead.error = 'VC303'), fixture.id('conflict open'), 'with the task that it names');
select is((select dead.task_id from dead where dead.error = 'orphan'), null, 'if there is one');
select is((select bool_and(dead.replayable and dead.signed) from dead), true, 'whether it can be replayed');
select fixture.job('early', 'submitted');
select is(
  (select callback.task_id from aivedio.list_dead_callbacks() as callback where callback.error = 'orphan'), fixture.id('early'),
  'an orphan whose task has come since names it'
);
select is((select count(*) from aivedio.list_dead_callbacks((select max(dead.id) from dead))), 1::bigint, 'a list goes on below an id');
select is((select count(*) from aivedio.list_dead_callbacks(null, 1)), 1::bigint, 'and has an end');
select aivedio.replay_callback(dead.id, 'ops', 'it has come', false) from dead where dead.error = 'orphan';
select is((select count(*) from aivedio.list_dead_callbacks()), 1::bigint, 'what was replayed is dead no more');
update aivedio.provider_callback_inbox as inbox set payload = null where inbox.process_status = 'dead';
select is((select callback.replayable from aivedio.list_dead_callbacks() as callback), false, 'without its payload it cannot be replayed');

-- Alarms.
update aivedio.alarms set resolved_at = aivedio._clock() where resolved_at is null;
select aivedio._raise_alarm('poll_malformed', 'replicate', '{"http_status": 200, "detail": "<html>a sample</html>"}');
select aivedio._raise_alarm('poll_malformed', 'replicate', '{"http_status": 200, "detail": "<html>a sample</html>"}');
set local aivedio.now = '2026-06-24 03:12:00+00';
select aivedio._raise_alarm('outbox_parked', '7', '{"error": "TooLarge"}');
select results_eq(
  $$ select alarm.kind, alarm.subject, alarm.count from aivedio.list_alarms() as alarm $$,
  $$ values ('outbox_parked', '7', 1::bigint), ('poll_malformed', 'replicate', 2) $$,
  'open alarms are listed, the latest first, with how often'
);
select is((select alarm.detail from aivedio.list_alarms() as alarm where alarm.kind = 'poll_malformed'), '{"http_status": 200}', 'without what a provider answered');
select is((select alarm.first_at = alarm.last_at from aivedio.list_alarms() as alarm limit 1), true, 'and since when');
select aivedio.resolve_alarm('outbox_parked', '7', 'ops', 'seen');
select is((select count(*) from aivedio.list_alarms()), 1::bigint, 'one that is resolved is gone');

-- Parked messages.
select is_empty($$ select aivedio.list_parked() $$, 'nothing is parked');
select aivedio.own_shard(shard::smallint) from generate_series(0, 7) as shard;
create temp table worst as select sent.id, sent.shard, sent.aggregate_id as task_id from aivedio.outbox_events as sent order by sent.id desc limit 1;
select aivedio.mark_unsent(worst.shard, array[worst.id], 'MessageTooLarge') from worst, generate_series(1, 20);
select results_eq(
  $$ select parked.id, parked.task_id, parked.error, parked.tries > 0, parked.status is not null from aivedio.list_parked() as parked $$,
  $$ select worst.id, worst.task_id, 'MessageTooLarge', true, true from worst $$,
  'what is parked is listed with its task and why'
);

-- What was done by hand.
select is((select action.action || ' ' || action.actor || ' ' || action.reason from aivedio.list_actions() as action limit 1), 'resolve_alarm ops seen', 'the latest action first');
select is((select count(*) from aivedio.list_actions(2)), 2::bigint, 'as many as asked for');

-- Providers.
select is(
  (select count(*) from aivedio.provider_overview()), (select count(*) from aivedio.providers), 'every provider has a row'
);
create function pg_temp.seen(p_field text)
returns text
language sql
as $seen$
  select to_jsonb(overview) ->> p_field from aivedio.provider_overview() as overview where overview.name = 'replicate';
$seen$;
select is(pg_temp.seen('webhook') || pg_temp.seen('poll') || pg_temp.seen('overridden'), 'truetruefalse', 'which tells what its profile has');
update aivedio.task_attempts as attempt set next_poll_at = aivedio._clock() where attempt.task_id in (fixture.id('conflict open'), fixture.id('overdue open'));
update aivedio.task_attempts as attempt set next_poll_at = aivedio._clock() + interval '1 minute' where attempt.task_id = fixture.id('early');
select is(
  (pg_temp.seen('scheduled')::integer - pg_temp.seen('due')::integer) || ' later, ' || (pg_temp.seen('due')::integer > 1),
  (select count(*) filter (where attempt.next_poll_at > aivedio._clock()) || ' later, true' from aivedio.task_attempts as attempt where attempt.provider = 'replicate'),
  'its polls'
);
select aivedio._open_circuit('replicate', 'default', 'credential_refused');
select is(pg_temp.seen('circuits')::jsonb #>> '{0,reason}', 'credential_refused', 'its open circuits, with the reason');
insert into aivedio.callback_coverage (provider, measured_at, ends, covered, coverage, delay_p50_s, delay_p95_s) values ('replicate', aivedio._clock(), 10, 9, 0.9, 0.4, 2);
select is(pg_temp.seen('coverage') || ' ' || pg_temp.seen('delay_p95_s'), '0.9 2', 'how well callbacks come');
delete from aivedio.poll_quotas;
insert into aivedio.poll_quotas (level, key, tokens, rate, burst, full_rate, refilled_at, blocked_until, refusals)
values ('provider', 'replicate', 5, 1, 10, 2, aivedio._clock(), aivedio._clock() + interval '1 minute', 3),
       ('model', 'replicate/a', 5, 1, 10, 1, aivedio._clock(), aivedio._clock() - interval '1 minute', 0),
       ('provider', 'replicated', 5, 1, 10, 2, aivedio._clock(), null, 0);
select is(
  (select string_agg(quota ->> 'key' || ' ' || (quota ->> 'refusals') || coalesce(quota ->> 'blocked_until', ' free'), ', ') from jsonb_array_elements(pg_temp.seen('quotas')::jsonb) as quota),
  'replicate 32026-06-24T03:13:00+00:00, replicate/a 0 free', 'and its quotas, and no other''s'
);
select is((pg_temp.seen('last_end_at'))::timestamptz is not null, true, 'and when a job last ended');

select finish();
rollback;
