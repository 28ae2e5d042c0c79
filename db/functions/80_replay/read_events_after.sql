/*
 * Stage 80 · replay · read_events_after
 *
 * The events of a project after a cursor, and whether they are all of them. One rule: the answer is complete if
 * and only if the first event's prev_event_id is the cursor, or there is no event and the cursor is the
 * stream's head. Anything else, a pruned, foreign, invented or restored-away cursor, is answered with the reason
 * and the head, from which the reader goes on after a snapshot. STABLE: events and head are of one moment.
 *
 * Called by   edge/gateway, for replay and to fill holes
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.read_events_after(
  p_project uuid,
  p_cursor  bigint,
  p_limit   integer default 500
)
returns aivedio.event_page
language plpgsql
stable
security definer  -- the gateway reads events without reading the table
set search_path = ''
set plan_cache_mode = force_custom_plan  -- a generic plan locks every partition
as $read_events_after$
declare
  v_page  aivedio.event_page;
  v_broken boolean;
begin
  select coalesce(max(stream.last_event_id), 0)
  into v_page.last_event_id
  from aivedio.project_streams as stream
  where stream.project_id = p_project;

  select
    pg_catalog.array_agg(
      row(
        found.event_id, found.prev_event_id, found.task_id, found.task_version, found.event_type, found.public_payload
      )::aivedio.stored_event
      order by found.event_id
    ),
    pg_catalog.bool_or(found.prev_event_id <> found.follows)
  into v_page.events, v_broken
  from (
    select
      event.*, pg_catalog.lag(event.event_id, 1, p_cursor) over (order by event.event_id) as follows
    from aivedio.task_events as event
    where event.project_id = p_project
      and event.event_id > p_cursor
    order by event.event_id
    limit p_limit
  ) as found;

  v_page.complete := coalesce(not v_broken, p_cursor = v_page.last_event_id);
  v_page.events := coalesce(v_page.events, '{}');

  if not v_page.complete then
    v_page.reason := case
      when p_cursor > v_page.last_event_id then 'ahead'
      when v_page.events = '{}' or v_page.events[1].prev_event_id > p_cursor then 'pruned'
      else 'unknown'
    end;
    v_page.events := '{}';
    v_page.more := false;
    return v_page;
  end if;

  v_page.more := v_page.events <> '{}'
    and v_page.events[pg_catalog.cardinality(v_page.events)].event_id < v_page.last_event_id;
  return v_page;
end;
$read_events_after$;

comment on function aivedio.read_events_after is
  'Stage 80: events after a cursor, complete or not at all; reason pruned, ahead or unknown tells why not.';

grant execute on function aivedio.read_events_after to aivedio_gateway;
