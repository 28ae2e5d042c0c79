/*
 * Stage 90 · operate · list_parked
 *
 * Outbox rows that were parked, newest first, each with its last error. The message itself is left out.
 *
 * Called by   edge/console; operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.list_parked(p_limit integer default 50)
returns setof aivedio.parked_message
language sql
stable
security definer  -- operators look without reading the outbox
set search_path = ''
as $list_parked$
  select
    parked.id, parked.aggregate_id, parked.aggregate_version, parked.payload #>> '{public_payload,status}',
    parked.retry_count, parked.last_error, parked.created_at
  from (
    -- First what is parked, by its own index; in the order of ids all that was ever sent would be passed.
    select row.*
    from aivedio.outbox_events as row
    where row.publish_status = 'parked'
    offset 0
  ) as parked
  order by parked.id desc
  limit least(p_limit, 500);
$list_parked$;

comment on function aivedio.list_parked is
  'Stage 90: parked outbox rows, newest first, with why.';

grant execute on function aivedio.list_parked to aivedio_operator;
