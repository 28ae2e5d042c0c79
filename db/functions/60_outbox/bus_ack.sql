/*
 * Stage 60 · outbox · bus_ack
 *
 * Ends messages of a group: their effect is committed. Answers how many were still there; one that
 * another reader has ended meanwhile is no error, since effects are idempotent.
 *
 * Called by   relay/pgmq.py, as aivedio_consumer
 * Writes      pgmq's queue table
 * Locks       the messages, until commit
 * Raises      42P01  the group has no queue
 */
create or replace function aivedio.bus_ack(
  p_group text,
  p_ids   bigint[]
)
returns integer
language plpgsql
volatile
security definer  -- a consumer may end messages through here without writing any table
set search_path = ''
as $bus_ack$
declare
  v_ended integer;
begin
  execute pg_catalog.format(
    'delete from pgmq.%I as message where message.msg_id = any ($1)', 'q_' || aivedio._bus_queue(p_group)
  )
  using p_ids;
  get diagnostics v_ended = row_count;
  return v_ended;
end;
$bus_ack$;

comment on function aivedio.bus_ack is
  'Stage 60: end messages whose effect is committed; answers how many were still there.';

grant execute on function aivedio.bus_ack to aivedio_consumer;
