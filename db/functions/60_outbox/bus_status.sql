/*
 * Stage 60 · outbox · bus_status
 *
 * How far each consumer group of the embedded bus is behind: messages waiting, those in somebody's
 * hands or put back for later, the age of the oldest, dead letters and the age of their oldest. Empty
 * where another bus is used.
 *
 * Called by   pipeline_status, _watch_queues; operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.bus_status()
returns jsonb
language plpgsql
stable
security definer  -- operators look without reading pgmq's tables
set search_path = ''
as $bus_status$
declare
  v_group  text;
  v_status jsonb;
  v_all    jsonb := '{}'::jsonb;
begin
  for v_group in
    select consumers.name from aivedio.consumer_groups as consumers order by consumers.name
  loop
    if pg_catalog.to_regclass('pgmq.q_' || aivedio._bus_queue(v_group)) is not null then
      execute pg_catalog.format(
        $status$
          select pg_catalog.jsonb_build_object(
            'waiting', pg_catalog.count(*) filter (where message.vt <= $1),
            'hidden', pg_catalog.count(*) filter (where message.vt > $1),
            'oldest_s', extract(epoch from $1 - pg_catalog.min(message.enqueued_at)),
            'dead', (select pg_catalog.count(*) from pgmq.%2$I as dead),
            'oldest_dead_s', (select extract(epoch from $1 - pg_catalog.min(dead.archived_at)) from pgmq.%2$I as dead)
          )
          from pgmq.%1$I as message
          where message.msg_id > $2
        $status$,
        'q_' || aivedio._bus_queue(v_group), 'a_' || aivedio._bus_queue(v_group)
      )
      into v_status
      using aivedio._clock(), coalesce(
        (select mark.low from aivedio.queue_marks as mark where mark.queue = 'bus_' || v_group and mark.shard = 0), 0
      );
      v_all := v_all || pg_catalog.jsonb_build_object(v_group, v_status);
    end if;
  end loop;
  return v_all;
end;
$bus_status$;

comment on function aivedio.bus_status is
  'Stage 60: per consumer group of the embedded bus: messages waiting and hidden, age of the oldest, dead letters.';

grant execute on function aivedio.bus_status to aivedio_operator, aivedio_consumer, aivedio_relay;
