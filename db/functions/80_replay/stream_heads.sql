/*
 * Stage 80 · replay · stream_heads
 *
 * The heads of the given projects' streams: the exact comparison behind streams_moved, for a
 * gateway that slept or whose window was too short. A project without a stream is left out.
 *
 * Called by   edge/gateway/feed.py, now and then and after a stall
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.stream_heads(p_projects uuid[])
returns setof aivedio.stream_head
language sql
stable
security definer  -- the gateway reads heads without reading the table
set search_path = ''
as $stream_heads$
  select stream.project_id, stream.last_event_id
  from aivedio.project_streams as stream
  where stream.project_id = any (p_projects);
$stream_heads$;

comment on function aivedio.stream_heads is
  'Stage 80: the last event id of each of these projects.';

grant execute on function aivedio.stream_heads to aivedio_gateway;
