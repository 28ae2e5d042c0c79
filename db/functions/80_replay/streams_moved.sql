/*
 * Stage 80 · replay · streams_moved
 *
 * Which projects have events after an id, and their newest: one cheap look for all the streams of
 * a gateway, so that nothing depends on Redis being honest. Callers pass the largest id seen two seconds
 * ago: ids become visible out of order across projects.
 *
 * Called by   edge/gateway/feed.py, every second
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.streams_moved(p_since bigint)
returns setof aivedio.stream_head
language sql
stable
security definer  -- the gateway reads heads without reading the table
set search_path = ''
set plan_cache_mode = force_custom_plan  -- a generic plan locks every partition
as $streams_moved$
  select event.project_id, max(event.event_id)
  from aivedio.task_events as event
  where event.event_id > p_since
  group by event.project_id;
$streams_moved$;

comment on function aivedio.streams_moved is
  'Stage 80: projects with events after an id, each with its newest event id.';

grant execute on function aivedio.streams_moved to aivedio_gateway;
