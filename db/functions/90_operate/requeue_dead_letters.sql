/*
 * Stage 90 · operate · requeue_dead_letters
 *
 * Puts dead letters of a consumer group back into its queue, in their order and with no tries counted.
 * p_ids null means all. They come behind what waits already: consumers judge by rows, not by arrival.
 *
 * Called by   operators
 * Writes      pgmq's queue and archive tables, aivedio.operator_actions, aivedio.alarms
 * Locks       the letters; then the alarm's row; the group's bell if it could be had at once
 * Raises      42P01  the group has no queue here
 */
create or replace function aivedio.requeue_dead_letters(
  p_group text,
  p_ids   bigint[],
  p_who   text,
  p_why   text
)
returns integer
language plpgsql
volatile
security definer  -- operators requeue without writing pgmq's tables
set search_path = ''
as $requeue_dead_letters$
declare
  v_bodies  jsonb[];
  v_headers jsonb[];
begin
  -- Own a transaction id before any message id is drawn: readers' low-water marks rely on it.
  perform pg_catalog.pg_current_xact_id();

  execute pg_catalog.format(
    $requeue$
      with letter as (
        delete from pgmq.%I as dead
        where $1 is null or dead.msg_id = any ($1)
        returning dead.msg_id, dead.message, dead.headers - 'error' as headers
      )
      select
        pg_catalog.array_agg(letter.message order by letter.msg_id),
        pg_catalog.array_agg(letter.headers order by letter.msg_id)
      from letter
    $requeue$,
    'a_' || aivedio._bus_queue(p_group)
  )
  into v_bodies, v_headers
  using p_ids;

  if v_bodies is null then
    return 0;
  end if;

  perform pgmq.send_batch(aivedio._bus_queue(p_group), v_bodies, v_headers, aivedio._clock());
  perform aivedio._audit(
    p_who, 'requeue_dead_letters', p_group, p_why,
    pg_catalog.jsonb_build_object('messages', pg_catalog.cardinality(v_bodies))
  );
  perform aivedio._settle_dead_letters(p_group);
  perform aivedio._ring('aivedio_bus', aivedio.bus_bell(p_group), p_group);
  return pg_catalog.cardinality(v_bodies);
end;
$requeue_dead_letters$;

comment on function aivedio.requeue_dead_letters is
  'Stage 90: deliver dead letters of a consumer group again, all or the given ones, audited; answers how many.';

grant execute on function aivedio.requeue_dead_letters to aivedio_operator;
