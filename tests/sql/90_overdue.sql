-- Stage 90: a job past its deadline that no poll can look at becomes a case, once, until it ends.
begin;
\ir support/fixtures.sql
select plan(9);

create function pg_temp.overdue()
returns text
language sql
as $overdue$
  select string_agg(attempt.client_request_id || ' ' || known.state, ', ' order by attempt.client_request_id)
  from aivedio.reconciliation_cases as known
  join aivedio.task_attempts as attempt on attempt.id = known.attempt_id
  where known.kind = 'overdue';
$overdue$;

-- nameless: a callback came before the provider's id; mute: its provider answers no queries; the others are polled, or in time.
select fixture.job(name, 'running') from (values ('nameless'), ('mute'), ('polled'), ('young')) as job (name);
update aivedio.task_attempts
set deadline_at = aivedio._clock() - interval '1 second', next_poll_at = aivedio._clock()
where id <> fixture.id('attempt of young');
update aivedio.task_attempts set deadline_at = aivedio._clock() + interval '1 second' where id = fixture.id('attempt of young');
update aivedio.task_attempts set provider_task_id = null where id in (fixture.id('attempt of nameless'), fixture.id('attempt of young'));
update aivedio.task_attempts set next_poll_at = null where id = fixture.id('attempt of mute');

select is(aivedio._watch_attempts(), 2, 'two jobs are late, and nobody asks about them');
select is(pg_temp.overdue(), 'request-attempt of mute open, request-attempt of nameless open', 'each is a case');
select is((select alarm.subject from aivedio.alarms as alarm where alarm.kind = 'attempt_overdue'), 'replicate', 'and alarmed, once for its provider');
select is(aivedio._watch_attempts(), 0, 'once is enough');
select is((aivedio.upkeep('alarms') ->> 'ran')::boolean, true, 'upkeep looks after them');

select aivedio.apply_observation(fixture.observation(fixture.id('attempt of nameless'), 'succeeded'));
select is(pg_temp.overdue(), 'request-attempt of mute open, request-attempt of nameless resolved', 'a result that comes after all closes it');


-- A lost submission is a case already; when there is none and nothing comes of it, it is one again.
select fixture.job('lost', 'submitting', p_attempt_status => 'submit_unknown');
update aivedio.task_attempts set deadline_at = aivedio._clock() - interval '1 second' where id = fixture.id('attempt of lost');
select aivedio._open_case('submit_unknown', attempt.id::text, attempt, null, '{}')
from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of lost');
select is(aivedio._watch_attempts(), 0, 'whose case is open waits for its answer');
update aivedio.reconciliation_cases as known set state = 'resolved', resolved_at = aivedio._clock(), resolution = 'kept', resolved_by = 'ops'
where known.kind = 'submit_unknown';
select is(aivedio._watch_attempts(), 1, 'whose case was closed is not forgotten');

-- What the application was to submit, and never recorded, is a case as well.
select fixture.job('unrecorded', 'created');
update aivedio.task_attempts set submit_state = 'application', deadline_at = aivedio._clock() - interval '1 second' where id = fixture.id('attempt of unrecorded');
select is(aivedio._watch_attempts(), 1, 'a task that its application never submitted is found at its deadline');

select finish();
rollback;
