-- Stage 40: every pair of task status and observed status does exactly what the design says.
--
-- The expectation is written out here, cell by cell; it is not read from aivedio.task_transitions.
begin;
\ir support/fixtures.sql
select no_plan();

create temporary table cell (
  task_status    text not null,
  attempt_status text not null,
  observed       text not null,
  verdict        text not null,
  becomes        text not null
);

-- An observation of running carries progress 40, which a task without progress takes over.
insert into cell (task_status, attempt_status, observed, verdict, becomes) values
  ('created',                 'created',    'queued',    'applied',        'queued'),
  ('created',                 'created',    'running',   'applied',        'running'),
  ('created',                 'created',    'succeeded', 'applied',        'provider_succeeded'),
  ('created',                 'created',    'failed',    'applied',        'failed'),
  ('created',                 'created',    'canceled',  'applied',        'canceled'),
  ('submitting',              'submitting', 'queued',    'applied',        'queued'),
  ('submitting',              'submitting', 'running',   'applied',        'running'),
  ('submitting',              'submitting', 'succeeded', 'applied',        'provider_succeeded'),
  ('submitting',              'submitting', 'failed',    'applied',        'failed'),
  ('submitting',              'submitting', 'canceled',  'applied',        'canceled'),
  ('submitted',               'submitted',  'queued',    'applied',        'queued'),
  ('submitted',               'submitted',  'running',   'applied',        'running'),
  ('submitted',               'submitted',  'succeeded', 'applied',        'provider_succeeded'),
  ('submitted',               'submitted',  'failed',    'applied',        'failed'),
  ('submitted',               'submitted',  'canceled',  'applied',        'canceled'),
  ('queued',                  'queued',     'queued',    'duplicate',      'queued'),
  ('queued',                  'queued',     'running',   'applied',        'running'),
  ('queued',                  'queued',     'succeeded', 'applied',        'provider_succeeded'),
  ('queued',                  'queued',     'failed',    'applied',        'failed'),
  ('queued',                  'queued',     'canceled',  'applied',        'canceled'),
  ('running',                 'running',    'queued',    'stale_status',   'running'),
  ('running',                 'running',    'running',   'applied',        'running'),
  ('running',                 'running',    'succeeded', 'applied',        'provider_succeeded'),
  ('running',                 'running',    'failed',    'applied',        'failed'),
  ('running',                 'running',    'canceled',  'applied',        'canceled'),
  ('provider_status_unknown', 'unknown',    'queued',    'applied',        'running'),
  ('provider_status_unknown', 'unknown',    'running',   'applied',        'running'),
  ('provider_status_unknown', 'unknown',    'succeeded', 'applied',        'provider_succeeded'),
  ('provider_status_unknown', 'unknown',    'failed',    'applied',        'failed'),
  ('provider_status_unknown', 'unknown',    'canceled',  'applied',        'canceled'),
  ('cancel_requested',        'running',    'queued',    'duplicate',      'cancel_requested'),
  ('cancel_requested',        'running',    'running',   'applied',        'cancel_requested'),
  ('cancel_requested',        'running',    'succeeded', 'applied',        'provider_succeeded'),
  ('cancel_requested',        'running',    'failed',    'applied',        'failed'),
  ('cancel_requested',        'running',    'canceled',  'applied',        'canceled'),
  ('provider_succeeded',      'succeeded',  'queued',    'after_terminal', 'provider_succeeded'),
  ('provider_succeeded',      'succeeded',  'running',   'after_terminal', 'provider_succeeded'),
  ('provider_succeeded',      'succeeded',  'succeeded', 'duplicate',      'provider_succeeded'),
  ('provider_succeeded',      'succeeded',  'failed',    'conflict',       'provider_succeeded'),
  ('provider_succeeded',      'succeeded',  'canceled',  'conflict',       'provider_succeeded'),
  ('processing_media',        'succeeded',  'queued',    'after_terminal', 'processing_media'),
  ('processing_media',        'succeeded',  'running',   'after_terminal', 'processing_media'),
  ('processing_media',        'succeeded',  'succeeded', 'duplicate',      'processing_media'),
  ('processing_media',        'succeeded',  'failed',    'conflict',       'processing_media'),
  ('processing_media',        'succeeded',  'canceled',  'conflict',       'processing_media'),
  ('ready',                   'succeeded',  'queued',    'after_terminal', 'ready'),
  ('ready',                   'succeeded',  'running',   'after_terminal', 'ready'),
  ('ready',                   'succeeded',  'succeeded', 'duplicate',      'ready'),
  ('ready',                   'succeeded',  'failed',    'conflict',       'ready'),
  ('ready',                   'succeeded',  'canceled',  'conflict',       'ready'),
  ('failed',                  'failed',     'queued',    'after_terminal', 'failed'),
  ('failed',                  'failed',     'running',   'after_terminal', 'failed'),
  ('failed',                  'failed',     'succeeded', 'conflict',       'failed'),
  ('failed',                  'failed',     'failed',    'duplicate',      'failed'),
  ('failed',                  'failed',     'canceled',  'conflict',       'failed'),
  ('canceled',                'canceled',   'queued',    'after_terminal', 'canceled'),
  ('canceled',                'canceled',   'running',   'after_terminal', 'canceled'),
  ('canceled',                'canceled',   'succeeded', 'conflict',       'canceled'),
  ('canceled',                'canceled',   'failed',    'conflict',       'canceled'),
  ('canceled',                'canceled',   'canceled',  'duplicate',      'canceled'),
  -- The other attempt states that a task can have: what counts at the end is the attempt's own end.
  ('submitting',              'submit_unknown', 'queued',    'applied',        'queued'),
  ('submitting',              'submit_unknown', 'running',   'applied',        'running'),
  ('submitting',              'submit_unknown', 'succeeded', 'applied',        'provider_succeeded'),
  ('submitting',              'submit_unknown', 'failed',    'applied',        'failed'),
  ('submitting',              'submit_unknown', 'canceled',  'applied',        'canceled'),
  ('cancel_requested',        'submitted',      'queued',    'duplicate',      'cancel_requested'),
  ('cancel_requested',        'submitted',      'running',   'applied',        'cancel_requested'),
  ('failed',                  'succeeded',      'running',   'after_terminal', 'failed'),
  ('failed',                  'succeeded',      'succeeded', 'duplicate',      'failed'),
  ('failed',                  'succeeded',      'failed',    'conflict',       'failed'),
  ('failed',                  'succeeded',      'canceled',  'conflict',       'failed'),
  ('canceled',                'succeeded',      'running',   'after_terminal', 'canceled'),
  ('canceled',                'succeeded',      'succeeded', 'duplicate',      'canceled'),
  ('canceled',                'succeeded',      'failed',    'conflict',       'canceled'),
  ('canceled',                'succeeded',      'canceled',  'conflict',       'canceled');

select is_empty(
  $$
    select status.word, observed.word
    from unnest(array[
      'created', 'submitting', 'submitted', 'queued', 'running', 'provider_status_unknown', 'cancel_requested',
      'provider_succeeded', 'processing_media', 'ready', 'failed', 'canceled'
    ]) as status (word)
    cross join unnest(array['queued', 'running', 'succeeded', 'failed', 'canceled']) as observed (word)
    except
    select cell.task_status, cell.observed from cell
  $$,
  'this file expects something of every pair'
);

select set_eq(
  $$ select transition.task_status, transition.observed from aivedio.task_transitions as transition $$,
  $$ select distinct cell.task_status, cell.observed from cell $$,
  'the state machine has a row for every pair and no other'
);

-- What a task looks like from everywhere that a change must reach.
create function pg_temp.facts(p_task uuid, p_verdict text)
returns text
language sql
as $facts$
  select format(
    '%s %s v%s events:%s outbox:%s ledger:%s conflicts:%s chained:%s',
    p_verdict, task.status, task.version,
    (select count(*) from aivedio.task_events as event where event.task_id = task.id and event.task_version = task.version),
    (select count(*) from aivedio.outbox_events as message where message.aggregate_id = task.id),
    coalesce(
      (select string_agg(seen.verdict, ',' order by seen.id) from aivedio.observations as seen where seen.task_id = task.id),
      'nothing'
    ),
    (
      select count(*)
      from aivedio.reconciliation_cases as entry
      where entry.task_id = task.id and entry.kind = 'conflict' and entry.state = 'open'
    ),
    (
      select coalesce(task.last_event_id, 0) = stream.last_event_id
      from aivedio.project_streams as stream
      where stream.project_id = task.project_id
    )
  )
  from aivedio.generation_tasks as task
  where task.id = p_task;
$facts$;

create function pg_temp.play(p_cell cell)
returns text
language plpgsql
as $play$
declare
  v_name    constant text := format('%s/%s/%s', p_cell.task_status, p_cell.attempt_status, p_cell.observed);
  v_attempt uuid;
  v_result  aivedio.applied;
begin
  v_attempt := fixture.job(v_name, p_cell.task_status, p_project => v_name, p_attempt_status => p_cell.attempt_status);
  v_result := aivedio.apply_observation(fixture.observation(
    v_attempt, p_cell.observed, p_progress => case p_cell.observed when 'running' then 40 end
  ));
  return pg_temp.facts(fixture.id(v_name), v_result.verdict);
end;
$play$;

select is(
  pg_temp.play(cell),
  format(
    '%s %s v%s events:%s outbox:%s ledger:%s conflicts:%s chained:t',
    cell.verdict, cell.becomes,
    case cell.verdict when 'applied' then 2 else 1 end,
    case cell.verdict when 'applied' then 1 else 0 end,
    case cell.verdict when 'applied' then 1 else 0 end,
    -- What only repeats a state before the end is counted, not stored; the first repeat of an end is stored.
    case when cell.verdict = 'duplicate' and cell.observed in ('queued', 'running') then 'nothing' else cell.verdict end,
    case cell.verdict when 'conflict' then 1 else 0 end
  ),
  format('%s, attempt %s: %s observed', cell.task_status, cell.attempt_status, cell.observed)
)
from cell;

-- An event says what the task became, once.
select is_empty(
  $$
    select event.public_payload
    from aivedio.task_events as event
    join aivedio.generation_tasks as task on task.id = event.task_id
    where event.public_payload ->> 'status' <> task.status
      or event.public_payload ->> 'stage' <> task.stage
      or (event.public_payload ->> 'task_version')::bigint <> task.version
      or (event.public_payload ->> 'progress')::integer is distinct from task.progress
      or event.event_type <> case
        when task.status in ('running', 'cancel_requested') and event.attempt_id in (
          select attempt.id
          from aivedio.task_attempts as attempt
          where attempt.id in (
            fixture.id('attempt of running/running/running'),
            fixture.id('attempt of cancel_requested/running/running'),
            fixture.id('attempt of cancel_requested/submitted/running')
          )
        ) then 'task.progress.changed'
        else 'task.status.changed'
      end
  $$,
  'each event carries the task as it became, and only progress alone is a progress event'
);

-- Provider status unknown leads back to where the attempt was, never lower.
create function pg_temp.resume(p_known text, p_observed text, p_cancel boolean default false)
returns text
language plpgsql
as $resume$
declare
  v_name    constant text := format('resume/%s/%s/%s', p_known, p_observed, p_cancel);
  v_attempt uuid;
begin
  perform fixture.task(
    v_name, 'provider_status_unknown', p_project => v_name,
    p_cancel_requested_at => case when p_cancel then aivedio._clock() end
  );
  v_attempt := fixture.attempt(v_name, v_name || ' attempt', 'unknown', p_known, p_provider_task_id => v_name);
  return (aivedio.apply_observation(fixture.observation(v_attempt, p_observed))).status;
end;
$resume$;

select is(pg_temp.resume('submitted', 'queued'), 'queued', 'unknown after submitted: queued leads to queued');
select is(pg_temp.resume('queued', 'queued'), 'queued', 'unknown after queued: queued leads to queued');
select is(pg_temp.resume('running', 'queued'), 'running', 'unknown after running: queued leads to running, not lower');
select is(pg_temp.resume('queued', 'running'), 'running', 'unknown after queued: running leads to running');
select is(
  pg_temp.resume('running', 'running', true), 'cancel_requested', 'unknown after a cancel request leads back to it'
);

-- A success after a cancel request, by the project's policy.
insert into aivedio.project_settings (project_id, cancel_policy) values (fixture.id('discarding'), 'discard');
select is(
  (aivedio.apply_observation(fixture.observation(
    fixture.job('discarded', 'cancel_requested', p_project => 'discarding'), 'succeeded'
  ))).status,
  'canceled',
  'a project that discards ends canceled when the provider finished all the same'
);
select results_eq(
  $$ select entry.kind from aivedio.reconciliation_cases as entry where entry.task_id = fixture.id('discarded') $$,
  $$ values ('stale_success') $$,
  'and the cost of the discarded result has a case'
);

-- An attempt that is not the current one changes nothing, whatever it says.
create function pg_temp.stale(p_observed text)
returns text
language plpgsql
as $stale$
declare
  v_name   constant text := 'stale/' || p_observed;
  v_old    uuid;
  v_result aivedio.applied;
begin
  perform fixture.task(v_name, 'running', p_project => v_name);
  v_old := fixture.attempt(v_name, v_name || ' old', 'running', p_provider_task_id => v_name || ' old');
  perform fixture.attempt(v_name, v_name || ' new', 'running', p_provider_task_id => v_name || ' new');
  v_result := aivedio.apply_observation(fixture.observation(v_old, p_observed));
  return pg_temp.facts(fixture.id(v_name), v_result.verdict);
end;
$stale$;

select is(
  pg_temp.stale(word),
  'stale_attempt running v1 events:0 outbox:0 ledger:stale_attempt conflicts:0 chained:t',
  format('an old attempt''s %s changes nothing and is recorded', word)
)
from unnest(array['queued', 'running', 'succeeded', 'failed', 'canceled']) as observed (word);

select results_eq(
  $$
    select entry.task_id
    from aivedio.reconciliation_cases as entry
    where entry.kind = 'stale_success' and entry.task_id <> fixture.id('discarded')
  $$,
  $$ values (fixture.id('stale/succeeded')) $$,
  'only the old attempt''s success, which costs money, has a case'
);

-- A word that the profile does not know changes nothing, in any state.
select is(
  (
    select pg_temp.facts(fixture.id('word/' || status.word), (aivedio.apply_observation(fixture.observation(
      fixture.job('word/' || status.word, status.word, p_project => 'word/' || status.word), null, p_word => 'melting'
    ))).verdict)
  ),
  format('unknown_word %s v1 events:0 outbox:0 ledger:unknown_word conflicts:0 chained:t', status.word),
  format('%s: an unknown word changes nothing and is recorded', status.word)
)
from (select distinct cell.task_status as word from cell) as status;

select results_eq(
  $$ select alarm.subject, alarm.count from aivedio.alarms as alarm where alarm.kind = 'unknown_word' $$,
  $$ values ('replicate:melting', 12::bigint) $$,
  'one alarm counts the unknown word'
);

-- A provider's own sequence decides before the matrix does.
select is(
  (aivedio.apply_observation(fixture.observation(
    (select fixture.attempt('numbered', 'numbered attempt', 'running', p_provider_task_id => 'numbered', p_sequence => 7)
     from fixture.task('numbered', 'running', p_project => 'numbered')),
    'succeeded', p_sequence => word.sequence
  ))).verdict,
  'stale_sequence',
  'a sequence that does not rise is stale, even for an end'
)
from (values (7::bigint)) as word (sequence);

select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('numbered attempt'), 'succeeded', p_sequence => 8))).verdict,
  'applied',
  'the next one is applied'
);

-- Progress: five points and a second apart, upward only.
select fixture.job('paced', 'running', p_project => 'paced');
create function pg_temp.progress(p_progress integer, p_at text)
returns text
language plpgsql
as $progress$
begin
  perform set_config('aivedio.now', '2026-06-24 03:10:' || p_at || '+00', true);
  return (aivedio.apply_observation(
    fixture.observation(fixture.id('attempt of paced'), 'running', p_progress => p_progress)
  )).verdict;
end;
$progress$;

select is(pg_temp.progress(10, '10'), 'applied', 'the first progress is written');
select is(pg_temp.progress(14, '20'), 'coalesced', 'four points are too little');
select is(pg_temp.progress(15, '10.5'), 'coalesced', 'half a second is too soon');
select is(pg_temp.progress(15, '20'), 'applied', 'five points after a second are written');
select is(pg_temp.progress(15, '30'), 'duplicate', 'the same progress again is a duplicate');
select is(pg_temp.progress(9, '40'), 'duplicate', 'progress never falls');
select is(pg_temp.progress(null, '50'), 'duplicate', 'running without progress repeats the known');
select is(
  pg_temp.facts(fixture.id('paced'), 'now'),
  'now running v3 events:1 outbox:2 ledger:applied,applied conflicts:0 chained:t',
  'two of seven were written'
);

-- The ledger knows who brought an end first, and who else did.
select fixture.job('raced', 'running', p_project => 'raced');
select results_eq(
  $$
    select (aivedio.apply_observation(
      fixture.observation(fixture.id('attempt of raced'), 'succeeded', p_source => report.source)
    )).verdict
    from (values (1, 'poll'), (2, 'webhook'), (3, 'webhook'), (4, 'poll')) as report (place, source)
    order by report.place
  $$,
  array['applied', 'duplicate', 'duplicate', 'duplicate'],
  'an end is applied once'
);
select results_eq(
  $$
    select seen.source, seen.verdict
    from aivedio.observations as seen
    where seen.task_id = fixture.id('raced')
    order by seen.id
  $$,
  $$ values ('poll', 'applied'), ('webhook', 'duplicate') $$,
  'and stored once per source'
);

-- Whoever speaks of an attempt: the provider has it, so that it is never submitted again.
select aivedio.apply_observation(
  fixture.observation(fixture.job('known by ' || source.name, 'created', p_project => 'known'), 'running', source.name)
)
from unnest(array['webhook', 'poll', 'reconcile']) as source (name);
select is(
  (
    select attempt.submit_state
    from aivedio.task_attempts as attempt
    where attempt.id = fixture.id('attempt of known by ' || source.name)
  ),
  'accepted',
  format('an observation by %s ends the submission', source.name)
)
from unnest(array['webhook', 'poll', 'reconcile']) as source (name);

-- Bad input is a code, and an unknown attempt a verdict.
select throws_ok(
  $$ select aivedio.apply_observation(fixture.observation(fixture.id('attempt of raced'), 'running', p_source => 'rumour')) $$,
  'VC403', null, 'an observation needs a source'
);
select is(
  (aivedio.apply_observation(fixture.observation(fixture.id('nobody'), 'running'))).verdict,
  'orphan',
  'an unknown attempt is a verdict'
);

select finish();
rollback;
