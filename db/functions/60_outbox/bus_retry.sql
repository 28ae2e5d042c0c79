/*
 * Stage 60 · outbox · bus_retry
 *
 * Makes a message due again after a delay: sooner than its visibility would, for one whose effect
 * failed, or later, for one whose effect takes long. False when it is gone.
 *
 * Called by   relay/pgmq.py, as aivedio_consumer
 * Writes      pgmq's queue table
 * Locks       the message, until commit
 * Raises      42P01  the group has no queue
 */
create or replace function aivedio.bus_retry(
  p_group   text,
  p_id      bigint,
  p_delay_s double precision
)
returns boolean
language plpgsql
volatile
security definer  -- a consumer may put messages back through here without writing any table
set search_path = ''
as $bus_retry$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_found integer;
begin
  execute pg_catalog.format(
    'update pgmq.%I as message set vt = $2 + pg_catalog.make_interval(secs => $3) where message.msg_id = $1',
    'q_' || aivedio._bus_queue(p_group)
  )
  using p_id, v_now, p_delay_s;
  get diagnostics v_found = row_count;
  return v_found > 0;
end;
$bus_retry$;

comment on function aivedio.bus_retry is
  'Stage 60: make a message due again after a delay in seconds.';

grant execute on function aivedio.bus_retry to aivedio_consumer;
