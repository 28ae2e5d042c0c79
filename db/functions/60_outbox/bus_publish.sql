/*
 * Stage 60 · outbox · bus_publish
 *
 * Puts messages into the queues of the consumer groups whose tags match, all of them or none, in the
 * given order. A group without tags takes everything. Answers with the number of messages, also of
 * those that no group wants: they have reached everybody who asked for them.
 *
 * Called by   relay/pgmq.py, as aivedio_relay
 * Writes      pgmq's queue tables
 * Locks       the bells of the groups, shared, until commit, those that could be had at once
 * Raises      VC613  a message is larger than 4 MiB, which no bus takes
 *             42P01  a group has no queue; call ensure_bus
 */
create or replace function aivedio.bus_publish(p_messages aivedio.outbox_message[])
returns integer
language plpgsql
volatile
security definer  -- aivedio_relay may fill the queues without reading them
set search_path = ''
as $bus_publish$
declare
  v_limit  constant integer := 4 * 1024 * 1024;
  v_now    constant timestamptz := aivedio._clock();
  v_bells  smallint[] := array[]::smallint[];
  v_groups text[] := array[]::text[];
  v_share  record;
begin
  if exists (
    select from pg_catalog.unnest(p_messages) as message where pg_catalog.pg_column_size(message.body) > v_limit
  ) then
    raise exception 'message is too large for the bus'
      using errcode = 'VC613',
            detail  = pg_catalog.format('at most %s bytes', v_limit),
            hint    = 'An event''s public payload is at most 4 KiB: look for what else the body holds.';
  end if;

  -- Own a transaction id before any message id is drawn: readers' low-water marks rely on it.
  perform pg_catalog.pg_current_xact_id();

  for v_share in
    select
      consumers.name,
      pg_catalog.array_agg(message.body order by message.place) as bodies,
      pg_catalog.array_agg(
        pg_catalog.jsonb_build_object('task', message.task_id, 'tag', message.tag) order by message.place
      ) as headers
    from pg_catalog.unnest(p_messages) with ordinality
      as message (id, task_id, tag, body, retry_count, place)
    join aivedio.consumer_groups as consumers
      on consumers.tags is null or message.tag = any (consumers.tags)
    group by consumers.name
    order by consumers.name
  loop
    perform pgmq.send_batch(aivedio._bus_queue(v_share.name), v_share.bodies, v_share.headers, v_now);
    v_groups := v_groups || v_share.name;
    v_bells := v_bells || aivedio.bus_bell(v_share.name);
  end loop;

  for v_place in 1 .. pg_catalog.cardinality(v_groups) loop
    perform aivedio._ring('aivedio_bus', v_bells[v_place], v_groups[v_place]);
  end loop;

  return pg_catalog.cardinality(p_messages);
end;
$bus_publish$;

comment on function aivedio.bus_publish is
  'Stage 60: put messages into the queues of the groups that want them, all or none, in the given order.';

grant execute on function aivedio.bus_publish to aivedio_relay;
