-- Stage 40: a provider that speaks of what we took for over has it after all: it costs, which is a case, and touches nothing.
begin;
\ir support/fixtures.sql
select plan(24);

create function pg_temp.see(p_task text, p_status text)
returns text
language sql
as $see$
  select (aivedio.apply_observation(fixture.observation(fixture.id('attempt of ' || p_task), p_status))).verdict;
$see$;

create function pg_temp.cases(p_task text)
returns text
language sql
as $cases$
  select coalesce(string_agg(known.kind, ' ' order by known.kind), 'none')
  from aivedio.reconciliation_cases as known where known.attempt_id = fixture.id('attempt of ' || p_task) and known.state = 'open';
$cases$;

create function pg_temp.attempt_of(p_task text)
returns text
language sql
as $attempt_of$
  select attempt.status || ' ' || attempt.submit_state || case when attempt.next_poll_at is not null then ' polled' else '' end
  from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of ' || p_task);
$attempt_of$;

-- An attempt that ended by our own decision, in each way, and one that the provider ended.
create function pg_temp.ended(p_task text, p_submit_state text, p_status text default 'failed')
returns void
language sql
as $ended$
  select fixture.job(p_task, p_status);
  update aivedio.task_attempts set submit_state = p_submit_state where id = fixture.id('attempt of ' || p_task);
$ended$;

select pg_temp.ended('refused', 'rejected'), pg_temp.ended('withdrawn', 'withdrawn', 'canceled'), pg_temp.ended('over', 'accepted');
select is(pg_temp.see('refused', 'running'), 'after_terminal', 'what was refused runs');
select is(pg_temp.cases('refused'), 'stale_success', 'that is a case');
select is(pg_temp.attempt_of('refused'), 'failed accepted', 'the provider has it; the end stays, and nobody polls');
select is(pg_temp.see('withdrawn', 'queued'), 'after_terminal', 'so does what was withdrawn');
select is(pg_temp.cases('withdrawn'), 'stale_success', 'that is a case, too');
select is(pg_temp.attempt_of('withdrawn'), 'canceled accepted', 'and its end stays');
select is(pg_temp.see('over', 'running'), 'after_terminal', 'what the provider itself has ended');
select is(pg_temp.cases('over'), 'none', 'is only told of late');
select is((select sum(task.version) from aivedio.generation_tasks as task), 3::numeric, 'no task is touched');

-- Its end says the same as ours, or another thing.
select pg_temp.ended('same', 'rejected'), pg_temp.ended('other', 'rejected'), pg_temp.ended('made', 'withdrawn', 'canceled');
select is(pg_temp.see('same', 'failed'), 'duplicate', 'it failed there, too');
select is(pg_temp.cases('same'), 'none', 'then it costs nothing');
select is(pg_temp.attempt_of('same'), 'failed accepted', 'though the provider had it');
select is(pg_temp.see('other', 'canceled'), 'conflict', 'another end');
select is(pg_temp.cases('other'), 'conflict', 'is a contradiction');
select is(pg_temp.see('made', 'succeeded'), 'conflict', 'a result, too');
select is(pg_temp.cases('made'), 'conflict', 'of which one case is enough');
select is(pg_temp.attempt_of('made'), 'canceled accepted polled', 'and which is asked about again');

-- A contradiction that is repeated does not put off the question.
update aivedio.task_attempts set next_poll_at = aivedio._clock() + interval '7 minutes' where id = fixture.id('attempt of made');
select is(pg_temp.see('made', 'succeeded'), 'conflict', 'it is said again');
select is(
  (select attempt.next_poll_at - aivedio._clock() from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of made')),
  interval '7 minutes', 'the next question stays when it was'
);

-- One that still waits for its submission is on its way when the provider speaks of it.
select fixture.job('early', 'created');
select is(pg_temp.see('early', null), 'unknown_word', 'a word that nobody knows');
select is(pg_temp.attempt_of('early'), 'created accepted polled', 'shows that the provider has it: it is not submitted again, but asked about');
select fixture.job('scheduled', 'submitted');
update aivedio.task_attempts set next_poll_at = null where id = fixture.id('attempt of scheduled');
select is(pg_temp.see('scheduled', 'running'), 'applied', 'one that was submitted and is not polled');
select is(pg_temp.attempt_of('scheduled'), 'running accepted', 'is polled no sooner for it');
select fixture.job('soon', 'created');
update aivedio.task_attempts set next_poll_at = aivedio._clock() + interval '1 second' where id = fixture.id('attempt of soon');
select pg_temp.see('soon', 'running');
select is(
  (select attempt.next_poll_at - aivedio._clock() from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt of soon')),
  interval '1 second', 'a question that is due soon is not put off'
);

select finish();
rollback;
