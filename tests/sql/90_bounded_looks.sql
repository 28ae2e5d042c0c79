-- Stage 90: what processes and people look at all the time reads what it answers, not the whole of a big table.
begin;
\ir support/fixtures.sql
select plan(22);

-- Twenty thousand tasks of one project: nearly all are over, nearly all of those are ready.
select fixture.project();
insert into aivedio.generation_tasks (
  id, tenant_id, project_id, user_id, status, stage, provider, model, terminal_at, asset_id, created_at
)
select
  ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, fixture.id('tenant'), fixture.id('project'), fixture.id('user'),
  kind.status, kind.status, 'replicate', 'lumen/video-1',
  case when kind.status <> 'running' then aivedio._clock() end, case kind.status when 'ready' then 'ast_1' end,
  aivedio._clock() - n * interval '1 minute'
from generate_series(1, 20000) as n
cross join lateral (
  select case when n in (50, 60) then 'canceled' when n in (70, 10000) then 'running' when n % 100 = 0 then 'failed' else 'ready' end as status
) as kind;

insert into aivedio.task_attempts (
  id, task_id, attempt_no, provider, model, client_request_id, provider_task_id, status, known_status, tenant_id, project_id,
  submit_state, created_at, submitted_at, terminal_at, next_poll_at, terminal_seen_by, poll_count
)
select
  md5('attempt' || task.id)::uuid, task.id, 1, task.provider, task.model, task.id::text, 'job-' || task.id,
  kind.status, kind.status, task.tenant_id, task.project_id, case kind.status when 'created' then 'due' else 'accepted' end, task.created_at,
  task.created_at, case kind.status when 'succeeded' then task.created_at + interval '1 minute' end,
  case kind.status when 'running' then aivedio._clock() - interval '1 minute' end, '{webhook}', 3
from (select made.*, row_number() over (order by made.id) as n from aivedio.generation_tasks as made) as task
cross join lateral (
  select case when task.n between 3000 and 5999 then 'running' when task.n between 9000 and 9499 then 'created' else 'succeeded' end as status
) as kind;
update aivedio.generation_tasks as task set current_attempt_id = md5('attempt' || task.id)::uuid;

insert into aivedio.observations (
  id, judged_at, received_at, task_id, attempt_id, provider, source, verdict, normalized_status, lag
)
select
  nextval('aivedio.observation_ids'), attempt.created_at, attempt.created_at, attempt.task_id, attempt.id, 'replicate',
  case n when 3 then 'poll' else 'webhook' end, case n when 3 then 'duplicate' else 'applied' end, 'succeeded', interval '1 second'
from aivedio.task_attempts as attempt cross join generate_series(1, 3) as n;
analyze aivedio.generation_tasks;
analyze aivedio.task_attempts;
analyze aivedio.observations;

-- Rows of tables with this name that this transaction has read so far.
create function pg_temp.read(p_table text)
returns bigint
language sql
volatile
as $read$
  select coalesce(sum(coalesce(stats.seq_tup_read, 0) + coalesce(stats.idx_tup_fetch, 0)), 0)::bigint
  from pg_stat_xact_user_tables as stats
  where stats.schemaname = 'aivedio' and stats.relname ~ ('^' || p_table || '(_p\d+)?$');
$read$;

create function pg_temp.reads(p_query text, p_table text)
returns bigint
language plpgsql
as $reads$
declare
  v_before constant bigint := pg_temp.read(p_table);
begin
  execute p_query;
  return pg_temp.read(p_table) - v_before;
end;
$reads$;

create function pg_temp.page(p_status text, p_after uuid default null)
returns text
language sql
as $page$
  select format(
    'select aivedio.list_snapshot(%L, %L, %L, 100, %L)', fixture.id('tenant'), fixture.id('project'), p_after, p_status
  );
$page$;

select cmp_ok(pg_temp.reads('select count(*) from aivedio.generation_tasks where model is not null', 'generation_tasks'), '>=', 20000::bigint, 'what is read is counted');

-- Pages of a project.
select cmp_ok(pg_temp.reads(pg_temp.page(null), 'generation_tasks'), '<=', 110::bigint, 'a page reads a page');
select cmp_ok(
  pg_temp.reads(pg_temp.page(null, '00000000-0000-7000-8000-000000000300'), 'generation_tasks'), '<=', 110::bigint, 'also far down'
);
select cmp_ok(pg_temp.reads(pg_temp.page('canceled'), 'generation_tasks'), '<=', 10::bigint, 'a page of what ended rarely reads what it shows');
select cmp_ok(pg_temp.reads(pg_temp.page('running'), 'generation_tasks'), '<=', 10::bigint, 'so does one of what is under way');
select cmp_ok(pg_temp.reads(pg_temp.page('queued'), 'generation_tasks'), '<=', 10::bigint, 'and one of nothing');
select cmp_ok(pg_temp.reads(pg_temp.page('ready'), 'generation_tasks'), '<=', 110::bigint, 'a page of what most are is a page');
select cmp_ok(pg_temp.reads(pg_temp.page('dancing'), 'generation_tasks'), '<=', 10::bigint, 'a word that is no status costs nothing');
select is(
  (select jsonb_array_length(aivedio.list_snapshot(fixture.id('tenant'), fixture.id('project'), null, 100, 'canceled') -> 'tasks')), 2, 'and they are right'
);
select is(
  (select jsonb_array_length(aivedio.list_snapshot(fixture.id('tenant'), fixture.id('project'), '00000000-0000-7000-8000-000000000060', 100, 'canceled') -> 'tasks')),
  1, 'after a cursor, too'
);

-- The status of everything.
select cmp_ok(pg_temp.reads('select aivedio.pipeline_status()', 'generation_tasks'), '<=', 10::bigint, 'the pipeline''s status reads open tasks');
select cmp_ok(pg_temp.reads('select aivedio.pipeline_status()', 'task_attempts'), '<=', 6000::bigint, 'and what is scheduled or due of attempts');
select is(aivedio.pipeline_status() -> 'tasks', '{"running": 2}', 'it counts what is under way');
select cmp_ok(
  pg_temp.reads($$ select aivedio.why_waiting('00000000-0000-7000-8000-000000010000') $$, 'generation_tasks|task_attempts|observations'), '<=', 20::bigint,
  'why a task waits is read from its own rows'
);

-- Claims.
select cmp_ok(
  pg_temp.reads('select aivedio._rank_polls(aivedio._clock(), 50)', 'task_attempts'), '<=', 1500::bigint, 'three thousand due polls: a claim looks at some'
);
select cmp_ok(pg_temp.reads('select aivedio.next_poll_in()', 'task_attempts'), '<=', 250::bigint, 'when the next one is due, at few');
select cmp_ok(
  pg_temp.reads('select aivedio._choose_submits(aivedio._clock(), 20)', 'task_attempts'), '<=', 100::bigint, 'five hundred due submissions: a claim looks at some'
);
select aivedio._open_circuit('replicate', 'default', 'credential_refused');
select cmp_ok(
  pg_temp.reads('select aivedio._choose_submits(aivedio._clock(), 20)', 'task_attempts'), '<=', 10::bigint, 'behind an open circuit, at none'
);
select cmp_ok(pg_temp.reads('select aivedio._watch_attempts()', 'task_attempts'), '<=', 200::bigint, 'upkeep looks at late attempts');

-- The report of one day: its attempts and their observations.
select cmp_ok(
  pg_temp.reads($$ select * from aivedio.convergence_report('2026-06-22 00:00+00', '2026-06-23 00:00+00') $$, 'task_attempts'), '<=', 1500::bigint,
  'a report reads the attempts of its days'
);
select cmp_ok(
  pg_temp.reads($$ select * from aivedio.convergence_report('2026-06-22 00:00+00', '2026-06-23 00:00+00') $$, 'observations'), '<=', 9000::bigint,
  'and what was observed of them'
);
select is(
  (select sum(report.attempts) from aivedio.convergence_report('2026-06-22 00:00+00', '2026-06-23 00:00+00') as report), 1440::numeric,
  'of one day'
);

select finish();
rollback;
