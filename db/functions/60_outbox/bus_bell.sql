/*
 * Stage 60 · outbox · bus_bell
 *
 * Answers with the lock number of a consumer group's doorbell: readers of the group hold it while
 * they are awake, bus_publish tries it. It is a hash of the name, so that adding a group moves no
 * other group's bell.
 *
 * Called by   relay/pgmq.py, as aivedio_consumer; bus_publish
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.bus_bell(p_group text)
returns smallint
language sql
immutable
strict
parallel safe
security definer  -- like every public function; it needs no privilege of the owner
set search_path = ''
as $bus_bell$
  select (pg_catalog.hashtext(p_group) & 32767)::smallint;
$bus_bell$;

comment on function aivedio.bus_bell is
  'Stage 60: the number of a consumer group''s bell on channel aivedio_bus.';

grant execute on function aivedio.bus_bell to aivedio_relay, aivedio_consumer;
