/*
 * Stage 90 · operate · convergence_report
 *
 * How providers behave, per day and model: who tells the end first, callback or poll, and by how much; how many
 * ends callbacks cover; how late, how disordered and how often repeated observations come; how long jobs take; how
 * many polls were in vain. Read from the ledger and the attempts of the days asked for, and nothing else.
 *
 * Called by   operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.convergence_report(
  p_from timestamptz,
  p_to   timestamptz
)
returns setof aivedio.convergence
language sql
stable
security definer  -- operators look without reading the tables
set search_path = ''
as $convergence_report$
  with attempt as (
    select
      known.*,
      (known.created_at at time zone 'UTC')::date as day,
      known.terminal_at - known.submitted_at as duration
    from aivedio.task_attempts as known
    where known.created_at >= p_from
      and known.created_at < p_to
  ),
  -- Attempt by attempt, so that of the ledger only their own rows are read.
  told as (
    select attempt.id, attempt.day, attempt.provider, attempt.model, seen.*
    from attempt
    cross join lateral (
      select
        min(known.judged_at) filter (
          where known.source = 'webhook' and known.normalized_status = attempt.status
        ) as callback_at,
        min(known.judged_at) filter (
          where known.source = 'poll' and known.normalized_status = attempt.status
        ) as poll_at,
        count(*) filter (where known.verdict in ('stale_status', 'stale_sequence', 'after_terminal')) as out_of_order,
        count(*) filter (where known.verdict = 'conflict') as conflicts,
        count(*) filter (where known.verdict = 'stale_attempt') as stale_attempts,
        count(*) filter (where known.verdict = 'unknown_word') as unknown_words,
        pg_catalog.array_agg(known.lag) filter (where known.source = 'webhook') as lags
      from aivedio.observations as known
      where known.task_id = attempt.task_id
        and known.attempt_id = attempt.id
    ) as seen
  ),
  lag as (
    select
      told.day, told.provider, told.model,
      pg_catalog.percentile_cont(0.5) within group (order by late.lag) as p50,
      pg_catalog.percentile_cont(0.95) within group (order by late.lag) as p95
    from told
    cross join lateral pg_catalog.unnest(told.lags) as late (lag)
    group by told.day, told.provider, told.model
  ),
  summary as (
    select
      attempt.day, attempt.provider, attempt.model,
      count(*) as attempts,
      count(attempt.terminal_at) as ended,
      count(*) filter (where attempt.terminal_seen_by[1] = 'webhook') as callback_first,
      count(*) filter (where attempt.terminal_seen_by[1] = 'poll') as poll_first,
      pg_catalog.percentile_cont(0.5) within group (order by told.poll_at - told.callback_at) as callback_lead,
      count(*) filter (where 'webhook' = any (attempt.terminal_seen_by)) as covered,
      pg_catalog.percentile_cont(0.5) within group (order by attempt.duration) as duration_p50,
      pg_catalog.percentile_cont(0.95) within group (order by attempt.duration) as duration_p95,
      coalesce(pg_catalog.sum(told.out_of_order), 0) as out_of_order,
      coalesce(pg_catalog.sum(told.conflicts), 0) as conflicts,
      coalesce(pg_catalog.sum(told.stale_attempts), 0) as stale_attempts,
      coalesce(pg_catalog.sum(told.unknown_words), 0) as unknown_words,
      pg_catalog.sum(attempt.poll_count) as polls,
      pg_catalog.sum(attempt.unchanged_polls) as unchanged,
      pg_catalog.sum(attempt.throttled_polls) as throttled,
      pg_catalog.sum(attempt.repeated_callbacks) as repeated
    from attempt
    left join told on told.id = attempt.id
    group by attempt.day, attempt.provider, attempt.model
  )
  select
    summary.day, summary.provider, summary.model, summary.attempts, summary.ended, summary.callback_first,
    summary.poll_first, summary.callback_lead, pg_catalog.round(summary.covered::numeric / nullif(summary.ended, 0), 3),
    lag.p50, lag.p95, summary.duration_p50, summary.duration_p95, summary.out_of_order::bigint,
    summary.conflicts::bigint, summary.stale_attempts::bigint, summary.unknown_words::bigint, summary.polls,
    pg_catalog.round(summary.unchanged::numeric / nullif(summary.polls, 0), 3),
    pg_catalog.round(summary.throttled::numeric / nullif(summary.polls, 0), 3), summary.repeated
  from summary
  left join lag using (day, provider, model)
  order by summary.day, summary.provider, summary.model;
$convergence_report$;

comment on function aivedio.convergence_report is
  'Stage 90: per day, provider and model: who told the end first and by how much, coverage, lag, durations, disorder, repeats, and polls in vain.';

grant execute on function aivedio.convergence_report to aivedio_operator;
