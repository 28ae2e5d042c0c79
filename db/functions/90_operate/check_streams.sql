/*
 * Stage 90 · operate · check_streams
 *
 * Proves again, on what was committed lately, what every reader relies on: each event of a project names the
 * one before it, the project's head is its newest event, and no version of a task exists twice (in one partition
 * a unique key sees to that, across two only the single writer). A violation is an alarm: stream_broken by project,
 * or version_twice by task. Goes on where the call before ended; far behind, it skips to the newest 100,000 ids.
 *
 * Called by   upkeep; operators
 * Writes      aivedio.stream_checks, aivedio.alarms
 * Locks       the row of aivedio.stream_checks; then the alarms' rows
 */
create or replace function aivedio.check_streams(p_limit integer default 2000)
returns integer
language plpgsql
volatile
security definer  -- upkeep reads events without reading the table
set search_path = ''
set plan_cache_mode = force_custom_plan  -- a generic plan locks every partition
as $check_streams$
declare
  v_floor bigint;
  v_mark  bigint;
  v_ids   bigint[];
  v_wrong record;
begin
  select coalesce(max(floors.floor), 0)
  into v_floor
  from aivedio.retention_floors as floors
  where floors.parent = 'task_events';

  select checks.event_id
  into v_mark
  from aivedio.stream_checks as checks
  for no key update;
  v_mark := greatest(v_mark, v_floor - 1, aivedio._last_id('task_events') - 100000);

  -- Ids become visible in order within a project only: the youngest seconds are left for the next call.
  v_ids := array(
    select event.event_id
    from aivedio.task_events as event
    where event.event_id > v_mark
      and event.created_at < aivedio._clock() - interval '10 seconds'
    order by event.event_id
    limit p_limit
  );

  for v_wrong in
    with checked as materialized (
      select
        event.event_id, event.prev_event_id, event.project_id, event.task_id, event.task_version,
        pg_catalog.lag(event.event_id) over (partition by event.project_id order by event.event_id) as follows
      from aivedio.task_events as event
      where event.event_id = any (v_ids)
    )
    select found.kind, found.subject, found.detail
    from (
      select
        'stream_broken' as kind, checked.project_id::text as subject,
        pg_catalog.jsonb_build_object(
          'event_id', min(checked.event_id), 'what', 'does not name the event before it'
        ) as detail
      from checked
      cross join lateral (
        select coalesce(
          checked.follows,
          (
            select max(older.event_id)
            from aivedio.task_events as older
            where older.project_id = checked.project_id
              and older.event_id < checked.event_id
          )
        )
      ) as before (event_id)
      where checked.prev_event_id <> before.event_id
        or (before.event_id is null and checked.prev_event_id >= v_floor and checked.prev_event_id > 0)
      group by checked.project_id
      union all
      select 'stream_broken', stream.project_id::text,
        pg_catalog.jsonb_build_object('event_id', stream.last_event_id, 'what', 'is not the newest event')
      from aivedio.project_streams as stream
      where stream.project_id in (select checked.project_id from checked)
        and stream.last_event_id <> (
          select max(newest.event_id) from aivedio.task_events as newest where newest.project_id = stream.project_id
        )
      union all
      select 'version_twice', event.task_id::text,
        pg_catalog.jsonb_build_object('version', event.task_version, 'events', pg_catalog.array_agg(event.event_id))
      from checked
      join aivedio.task_events as event
        on event.task_id = checked.task_id
        and event.task_version = checked.task_version
      group by event.task_id, event.task_version
      having count(distinct event.event_id) > 1
    ) as found
    order by found.kind, found.subject
    limit 100
  loop
    perform aivedio._raise_alarm(v_wrong.kind, v_wrong.subject, v_wrong.detail);
  end loop;

  update aivedio.stream_checks as checks
  set event_id = coalesce(v_ids[pg_catalog.cardinality(v_ids)], v_mark),
      at       = aivedio._clock();
  return pg_catalog.cardinality(v_ids);
end;
$check_streams$;

comment on function aivedio.check_streams is
  'Stage 90: check the chains of events that were committed since the last call, p_limit at most; what is broken is an alarm. Answers how many events.';

grant execute on function aivedio.check_streams to aivedio_operator;
