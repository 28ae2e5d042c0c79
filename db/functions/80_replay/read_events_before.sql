/*
 * Stage 80 · replay · read_events_before
 *
 * The newest events of a project up to and including one id, oldest first: one backward read serves
 * every reader whose cursor is older than what a gateway keeps in memory. complete tells whether the rows
 * are an unbroken chain that ends at p_before; more, whether older events exist.
 *
 * Called by   edge/gateway
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.read_events_before(
  p_project uuid,
  p_before  bigint,
  p_limit   integer default 1000
)
returns aivedio.event_page
language plpgsql
stable
security definer  -- the gateway reads events without reading the table
set search_path = ''
set plan_cache_mode = force_custom_plan  -- a generic plan locks every partition
as $read_events_before$
declare
  v_page aivedio.event_page;
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
    -- Each row must be followed by the one that names it; the newest by nothing, as p_before itself.
    pg_catalog.bool_and(found.event_id = found.named)
  into v_page.events, v_page.complete
  from (
    select
      event.*, pg_catalog.lead(event.prev_event_id, 1, p_before) over (order by event.event_id) as named
    from (
      select newest.*
      from aivedio.task_events as newest
      where newest.project_id = p_project
        and newest.event_id <= p_before
      order by newest.event_id desc
      limit p_limit
    ) as event
  ) as found;

  v_page.complete := coalesce(v_page.complete, p_before = 0);
  v_page.events := coalesce(v_page.events, '{}');
  v_page.reason := case when not v_page.complete then 'pruned' end;
  v_page.more := v_page.complete and v_page.events <> '{}' and v_page.events[1].prev_event_id > 0;
  return v_page;
end;
$read_events_before$;

comment on function aivedio.read_events_before is
  'Stage 80: the newest events up to an id, oldest first, as an unbroken chain; more tells that older ones were written.';

grant execute on function aivedio.read_events_before to aivedio_gateway;
