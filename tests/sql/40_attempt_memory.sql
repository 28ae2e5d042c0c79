-- Stage 40: an attempt remembers what its provider said of it, forward only, and from the first word on it is followed.
begin;
\ir support/fixtures.sql
select plan(42);

create function pg_temp.see(
  p_task text, p_status text, p_sequence bigint default null, p_source text default 'webhook', p_progress integer default null
)
returns text
language sql
as $see$
  select (told).verdict || ' ' || (told).status
  from aivedio.apply_observation(
    fixture.observation(fixture.id('attempt of ' || p_task), p_status, p_source, p_progress, p_sequence, p_word => coalesce(p_status, 'melting'))
  ) as told;
$see$;

create function pg_temp.remembers(p_task text)
returns text
language sql
as $remembers$
  select concat_ws(' ', attempt.status, attempt.submit_state, attempt.next_poll_at - aivedio._clock())
  from aivedio.task_attempts as attempt
  where attempt.id = fixture.id('attempt of ' || p_task);
$remembers$;

-- Whoever speaks of it, and whatever the word: the provider has it. It is not submitted again, and polled from now on.
select fixture.job('sent', 'submitting');
select is(pg_temp.see('sent', null), 'unknown_word submitting', 'an unknown word overtakes the answer to the submission');
select is(pg_temp.remembers('sent'), 'submitting accepted 00:00:10', 'the job exists and will be asked about');

select fixture.job('reconciled', 'submitting');
select is(pg_temp.see('reconciled', 'running', p_source => 'reconcile'), 'applied running', 'a lookup finds the job');
select is(pg_temp.remembers('reconciled'), 'running accepted 00:00:10', 'which counts like any other word of the provider');

select fixture.job('delayed', 'submitting');
update aivedio.task_attempts set submit_state = 'due', submit_due_at = aivedio._clock() where id = fixture.id('attempt of delayed');
select is(pg_temp.see('delayed', 'queued'), 'applied queued', 'a job that surely was not accepted turns up all the same');
select is(pg_temp.remembers('delayed'), 'queued accepted 00:00:10', 'it is asked about');
select is_empty(
  $$ select claimed from aivedio.claim_submits('worker', 10, 'http://127.0.0.1') as claimed
     where (claimed).attempt_id = fixture.id('attempt of delayed') $$,
  'and not submitted a second time'
);

select fixture.job('ended', 'submitting');
select is(pg_temp.see('ended', 'failed'), 'applied failed', 'an end overtakes the answer to the submission');
select is(pg_temp.remembers('ended'), 'failed accepted', 'then there is nothing to ask about');

-- The provider's own count.
select fixture.job('counted', 'running');
select is(pg_temp.see('counted', 'running', 5, p_progress => 10), 'applied running', 'a sequence begins anywhere');
select is(pg_temp.see('counted', 'running', 5, 'poll', 10), 'duplicate running', 'a poll sees what a callback has brought: nothing new');
select is(pg_temp.see('counted', 'succeeded', 5, 'poll'), 'stale_sequence running', 'another state at the same place is not believed');
select is(pg_temp.see('counted', 'queued', 4, 'poll'), 'stale_sequence running', 'nor is what falls behind');
select is(pg_temp.see('counted', 'running', 4, p_progress => 90), 'stale_sequence running', 'nor progress from there');
select is(
  (select attempt.progress from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of counted')), 10::smallint,
  'and the attempt does not keep it'
);
select is(pg_temp.see('counted', 'queued', 9), 'stale_status running', 'what goes back is refused');
select is(pg_temp.see('counted', null, 9), 'unknown_word running', 'what means nothing, too');
select is(pg_temp.see('counted', 'succeeded', 6), 'applied provider_succeeded', 'and neither counts: the end comes with the next one');
select is(pg_temp.see('counted', 'succeeded', 6, 'poll'), 'duplicate provider_succeeded', 'and is the same end when a poll sees it');

select fixture.job('lost', 'provider_status_unknown');
update aivedio.task_attempts set last_provider_seq = 5 where id = fixture.id('attempt of lost');
select is(pg_temp.see('lost', 'running', 4, 'poll'), 'stale_sequence provider_status_unknown', 'old news does not lead out of unknown');
select is(
  pg_temp.see('lost', 'running', 5, 'poll'), 'applied running',
  'a poll that works again does, though nothing has happened at the provider meanwhile'
);

-- An old attempt keeps its own order, too.
select fixture.task('again', 'running');
select fixture.attempt('again', 'attempt of again', 'running', p_provider_task_id => 'one', p_sequence => 5);
select fixture.attempt('again', 'second', 'running', p_provider_task_id => 'two');
select pg_temp.see('again', 'failed', 4);
select is(pg_temp.remembers('again'), 'running accepted', 'an overtaken failure does not end an old attempt');
select pg_temp.see('again', 'succeeded', 6);
select is(pg_temp.remembers('again'), 'succeeded accepted', 'so that its late success can be adopted');

-- It may begin to count, and count no more.
select fixture.task('uncounted', 'running');
select fixture.attempt('uncounted', 'attempt of uncounted', 'queued', p_provider_task_id => 'three');
select fixture.attempt('uncounted', 'third', 'running', p_provider_task_id => 'four');
select is(pg_temp.see('uncounted', 'running', 5), 'stale_attempt running', 'an old attempt begins to count');
select is(pg_temp.remembers('uncounted'), 'running accepted', 'and goes its way');
select is(pg_temp.see('uncounted', 'succeeded'), 'stale_attempt running', 'its success comes without a number');
select is(pg_temp.remembers('uncounted'), 'succeeded accepted', 'and ends it');

update aivedio.task_attempts set status = 'unknown', terminal_at = null, known_status = 'running' where id = fixture.id('attempt of uncounted');
select pg_temp.see('uncounted', null);
select is(pg_temp.remembers('uncounted'), 'unknown accepted', 'a word that means nothing does not lead out of unknown');

-- Neither its status nor its progress goes back.
create function pg_temp.further(p_task text)
returns text
language sql
as $further$
  select concat_ws(' ', attempt.status, attempt.known_status, attempt.progress)
  from aivedio.task_attempts as attempt
  where attempt.id = fixture.id('attempt of ' || p_task);
$further$;

select fixture.job('forward', 'running');
select pg_temp.see('forward', 'running', p_progress => 50);
select is(pg_temp.see('forward', 'running', p_progress => 40), 'duplicate running', 'progress that falls is nothing new');
select is(pg_temp.further('forward'), 'running running 50', 'and is forgotten');
select fixture.job('canceling', 'cancel_requested');
select is(pg_temp.see('canceling', 'queued'), 'duplicate cancel_requested', 'a job that shall be canceled is said to be queued again');
select is(pg_temp.further('canceling'), 'running running', 'it is not');
select fixture.job('found', 'provider_status_unknown');
select pg_temp.see('found', 'queued');
select is(pg_temp.further('found'), 'running running', 'nor is one that was lost for a while');

-- A word that means nothing is no proof that polls work again.
update aivedio.task_attempts set poll_failures = 3 where id = fixture.id('attempt of forward');
select pg_temp.see('forward', null, p_source => 'poll');
select is((select attempt.poll_failures from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of forward')), 3, 'failures go on being counted');
select pg_temp.see('forward', 'running', p_source => 'poll');
select is((select attempt.poll_failures from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of forward')), 0, 'until something is understood');

select throws_ok(
  $$ select aivedio._apply_locked(fixture.observation(fixture.id('nobody'), 'running')) $$,
  'VC402', 'there is no such attempt',
  'nothing is applied to an attempt that does not exist'
);

-- A task that is canceled before its submission leaves no attempt behind that seems to wait.
select fixture.job('never', 'created');
select aivedio.request_cancel(fixture.id('tenant'), fixture.id('project'), fixture.id('never'), fixture.id('user'));
select results_eq(
  $$ select attempt.status, attempt.known_status from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of never') $$,
  $$ values ('canceled', 'canceled') $$,
  'an attempt that was never submitted is over in every respect'
);


-- What only waited for an attempt's end is over with it; a contradiction is not.
select fixture.job('slow', 'running');
select aivedio._open_case(kind, attempt.id::text, attempt, null, '{}')
from aivedio.task_attempts as attempt
cross join unnest(array['overdue', 'not_found', 'conflict']) as waiting (kind)
where attempt.id = fixture.id('attempt of slow');
select pg_temp.see('slow', 'running');
select is(
  (select count(*) from aivedio.reconciliation_cases as known where known.attempt_id = fixture.id('attempt of slow') and known.state = 'open'),
  3::bigint,
  'a job that is overdue and still runs stays a case'
);
select pg_temp.see('slow', 'succeeded');
select results_eq(
  $$ select known.kind, known.resolution from aivedio.reconciliation_cases as known
     where known.attempt_id = fixture.id('attempt of slow') order by known.kind $$,
  $$ values ('conflict', null), ('not_found', 'ended'), ('overdue', 'ended') $$,
  'until it ends'
);

-- The first answer of a poll of two requests waits for the second: until the job is over, or that request has been answered.
create function pg_temp.first_answer(p_task text)
returns text
language sql
as $first_answer$
  select attempt.poll_answer ->> 'state' from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of ' || p_task);
$first_answer$;
select fixture.job('twofold', 'running'), fixture.job('asked', 'running');
update aivedio.task_attempts set poll_answer = '{"state": "done"}' where id in (fixture.id('attempt of twofold'), fixture.id('attempt of asked'));
update aivedio.task_attempts set poll_lease_until = aivedio._clock() + interval '1 minute' where id = fixture.id('attempt of asked');
select pg_temp.see('twofold', 'running');
select is(pg_temp.first_answer('twofold'), 'done', 'news of a job that goes on leaves it');
select pg_temp.see('twofold', 'succeeded');
select is(pg_temp.first_answer('twofold'), null, 'with the job''s end nobody asks the second question');
select pg_temp.see('asked', 'succeeded');
select is(pg_temp.first_answer('asked'), 'done', 'unless somebody just does');

select finish();
rollback;
