-- Stage 40: whoever knows the provider's id of a submission can say so.
begin;
\ir support/fixtures.sql
select plan(15);

create function pg_temp.record(p_task text, p_id text)
returns aivedio.applied
language sql
as $record$
  select aivedio.record_submission(
    fixture.id('tenant'), fixture.id('project'), fixture.id(p_task), p_id, 'ops@example.com', 'found in the dashboard'
  );
$record$;

select fixture.job('lost', 'submitting', p_attempt_status => 'submit_unknown');
select aivedio._open_case('submit_unknown', attempt.id::text, attempt, null, '{}')
from aivedio.task_attempts as attempt where attempt.task_id = fixture.id('lost');
select fixture.job('own', 'created');
select fixture.job('known', 'running');

select results_eq(
  $$ select (told).verdict, (told).status from pg_temp.record('lost', 'job-1') as told $$,
  $$ values ('applied', 'submitted') $$,
  'a lost submission is found'
);
select results_eq(
  $$ select known.state, known.resolution from aivedio.reconciliation_cases as known $$,
  $$ values ('resolved', 'accepted') $$,
  'its case is closed'
);
select isnt(
  (select attempt.next_poll_at from aivedio.task_attempts as attempt where attempt.task_id = fixture.id('lost')), null,
  'and it is polled'
);
select is((pg_temp.record('lost', 'job-1')).verdict, 'duplicate', 'saying it twice changes nothing');
select is((pg_temp.record('lost', 'job-2')).verdict, 'refused', 'nor does saying something else');

select results_eq(
  $$ select (told).verdict, (told).status from pg_temp.record('own', 'job-3') as told $$,
  $$ values ('applied', 'submitted') $$,
  'an application may submit by itself'
);
select is_empty(
  $$ select claimed from aivedio.claim_submits('worker', 10, 'http://127.0.0.1') as claimed $$,
  'then nobody else submits it'
);
select is((pg_temp.record('known', 'job-4')).verdict, 'refused', 'a known submission is not renamed');
select throws_ok($$ select pg_temp.record('own', ' ') $$, 'VC414', null, 'an id is something');
select throws_ok($$ select pg_temp.record('own', repeat('x', 301)) $$, 'VC414', null, 'and not everything');

-- Submitted it was, but the id is another attempt's: nobody may submit it once more on a guess.
select fixture.job('doubtful', 'created');
select is((pg_temp.record('doubtful', 'job-3')).verdict, 'conflict', 'the id of another attempt is refused');
select is_empty(
  $$ select claimed from aivedio.claim_submits('worker', 10, 'http://127.0.0.1') as claimed $$,
  'and what somebody has submitted is not submitted again'
);
select is(
  (select string_agg(known.kind, ' ' order by known.kind) from aivedio.reconciliation_cases as known where known.state = 'open'),
  'mapping submit_unknown', 'a person decides'
);
update aivedio.reconciliation_cases set state = 'resolved', resolved_at = aivedio._clock(), resolution = 'kept', resolved_by = 'test'
where state = 'open';

-- A callback finds it, too.
select fixture.job('spoken of', 'submitting', p_attempt_status => 'submit_unknown');
select aivedio._open_case('submit_unknown', attempt.id::text, attempt, null, '{}')
from aivedio.task_attempts as attempt where attempt.task_id = fixture.id('spoken of');
select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('attempt of spoken of'), 'running'))).status, 'running',
  'a callback about a lost submission moves its task'
);
select is(
  (select count(*) from aivedio.reconciliation_cases as known where known.state = 'open'), 0::bigint,
  'and closes its case'
);

select finish();
rollback;
