/*
 * Stage 60 · outbox · ensure_bus
 *
 * Makes the queue of every consumer group that has none yet, and answers with the groups whose queue
 * it made. A new row of consumer_groups works after the next call. Queues of removed groups stay:
 * dropping messages is a person's decision.
 *
 * Called by   aivedio migrate, at its end; operators after adding a group
 * Writes      pgmq's tables
 * Locks       one advisory lock of pgmq for each queue that is made, until commit
 * Raises      VC611  pgmq is not installed
 */
create or replace function aivedio.ensure_bus()
returns setof text
language plpgsql
volatile
security definer  -- queues belong to the owner, so that no edge role can read them past the functions
set search_path = ''
as $ensure_bus$
declare
  v_group text;
begin
  if pg_catalog.to_regclass('pgmq.meta') is null then
    raise exception 'pgmq is not installed in this database'
      using errcode = 'VC611',
            hint    = 'Run aivedio migrate; it installs pgmq where a bus of its own is wanted.';
  end if;

  for v_group in
    select consumers.name
    from aivedio.consumer_groups as consumers
    where not exists (
      select from pgmq.meta as queue where queue.queue_name = aivedio._bus_queue(consumers.name)
    )
    order by consumers.name
  loop
    perform pgmq.create(aivedio._bus_queue(v_group));
    return next v_group;
  end loop;
end;
$ensure_bus$;

comment on function aivedio.ensure_bus is
  'Stage 60: make the missing queues of the embedded bus, one per consumer group; answers which were made.';

grant execute on function aivedio.ensure_bus to aivedio_operator;
