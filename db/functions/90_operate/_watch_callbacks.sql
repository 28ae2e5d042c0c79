/*
 * Stage 90 · operate · _watch_callbacks
 *
 * Measures how many of each provider's latest ends its callbacks told, and how late they came. Polls are rarer the more
 * they tell (_sparse_factor); where they tell too few there is an alarm, which closes when they have come back well.
 *
 * An end is told by a callback that reported it or, where callbacks are only hints, by one that came shortly before it
 * was found or any time later. Cancellations do not count, for they are often not called back, nor ends of which a
 * callback may still be on its way. Fewer than ten ends of a day say nothing.
 *
 * Called by   upkeep
 * Writes      aivedio.callback_coverage, aivedio.alarms, aivedio.operator_actions
 * Locks       the rows, in order of provider → the alarms' rows
 */
create or replace function aivedio._watch_callbacks()
returns integer
language plpgsql
volatile
set search_path = ''
as $_watch_callbacks$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_grace constant interval := pg_catalog.make_interval(
    secs => aivedio._setting('callback_grace_s')::double precision
  );
  v_low   constant double precision := aivedio._setting('callback_coverage_low');
  v_most  constant integer := aivedio._setting('callback_coverage_ends');
  v_known aivedio.callback_coverage;
  v_count integer := 0;
begin
  insert into aivedio.callback_coverage as known (
    provider, measured_at, ends, covered, coverage, delay_p50_s, delay_p95_s
  )
  select
    provider.name, v_now, measured.ends, measured.covered, measured.covered::double precision / measured.ends,
    measured.delay_p50_s, measured.delay_p95_s
  from aivedio.providers as provider
  cross join lateral (
    select
      count(*) as ends,
      count(*) filter (where ended.told) as covered,
      pg_catalog.percentile_cont(0.5) within group (order by ended.delay_s) as delay_p50_s,
      pg_catalog.percentile_cont(0.95) within group (order by ended.delay_s) as delay_p95_s
    from (
      select
        told.is_told as told,
        case when told.is_told and attempt.last_callback_at > attempt.last_provider_at
          then extract(epoch from attempt.last_callback_at - attempt.last_provider_at)::double precision
        end as delay_s
      from aivedio.task_attempts as attempt
      cross join lateral (
        select 'webhook' = any (attempt.terminal_seen_by) or coalesce(
          attempt.last_callback_at >= attempt.terminal_at - case
            when provider.effective @? '$.webhook ? (@.signed == false || @.thin == true)' then interval '1 minute'
            else interval '0'
          end,
          false
        ) as is_told
      ) as told
      where attempt.provider = provider.name
        and attempt.terminal_at between v_now - interval '1 day' and v_now - v_grace
        and attempt.status <> 'canceled'
        and attempt.callback_token_hash is not null
      order by attempt.terminal_at desc
      limit v_most
    ) as ended
  ) as measured
  where pg_catalog.jsonb_typeof(provider.effective -> 'webhook') = 'object'
    and measured.ends >= 10
  order by provider.name
  on conflict (provider) do update
  set measured_at = excluded.measured_at,
      ends        = excluded.ends,
      covered     = excluded.covered,
      coverage    = excluded.coverage,
      delay_p50_s = excluded.delay_p50_s,
      delay_p95_s = excluded.delay_p95_s;

  for v_known in
    select measured.*
    from aivedio.callback_coverage as measured
    where measured.measured_at = v_now
    order by measured.provider
  loop
    v_count := v_count + 1;
    if v_known.coverage < v_low then
      perform aivedio._raise_alarm('callback_coverage', v_known.provider, pg_catalog.to_jsonb(v_known) - 'provider');
    elsif v_known.coverage >= (1 + v_low) / 2 then
      perform aivedio.resolve_alarm('callback_coverage', v_known.provider, 'aivedio', 'callbacks tell the ends again');
    end if;
  end loop;
  return v_count;
end;
$_watch_callbacks$;

comment on function aivedio._watch_callbacks is
  'Stage 90: measure how well callbacks cover each provider and alarm where they do not; answers how many were measured.';
