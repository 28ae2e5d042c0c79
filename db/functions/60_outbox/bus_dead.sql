/*
 * Stage 60 · outbox · bus_dead
 *
 * Makes a message a dead letter at once: its consumer knows that no retry will help. False when it
 * is gone.
 *
 * Called by   relay/pgmq.py, as aivedio_consumer
 * Writes      pgmq's queue and archive tables, aivedio.alarms
 * Locks       the message; then the alarm's row
 * Raises      42P01  the group has no queue
 */
create or replace function aivedio.bus_dead(
  p_group text,
  p_id    bigint,
  p_error text
)
returns boolean
language plpgsql
volatile
security definer  -- a consumer may bury messages through here without writing any table
set search_path = ''
as $bus_dead$
begin
  return aivedio._bury(p_group, array[p_id], p_error) > 0;
end;
$bus_dead$;

comment on function aivedio.bus_dead is
  'Stage 60: move a message to the dead letters of its consumer group, with the reason.';

grant execute on function aivedio.bus_dead to aivedio_consumer;
