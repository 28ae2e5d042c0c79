/*
 * Stage 60 · outbox · _bus_queue
 *
 * Names the pgmq queue of a consumer group. The prefix keeps our queues apart from those that an
 * installation may have made in the same database for purposes of its own.
 *
 * Called by   every bus_ function
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._bus_queue(p_group text)
returns text
language sql
immutable
strict
parallel safe
set search_path = ''
as $_bus_queue$
  select 'aivedio_' || p_group;
$_bus_queue$;

comment on function aivedio._bus_queue is
  'Stage 60: the name of a consumer group''s queue on the embedded bus.';
