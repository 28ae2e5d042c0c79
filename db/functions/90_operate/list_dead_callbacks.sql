/*
 * Stage 90 · operate · list_dead_callbacks
 *
 * Callbacks that ended dead, newest first, each with the attempt that it names now: an orphan may have found its own
 * since. p_before goes on below an id. The payload itself is left out.
 *
 * Called by   edge/console; operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.list_dead_callbacks(
  p_before bigint default null,
  p_limit  integer default 50
)
returns setof aivedio.dead_callback
language sql
stable
security definer  -- operators look without reading the inbox
set search_path = ''
as $list_dead_callbacks$
  with dead as materialized (
    select inbox.*
    from aivedio.provider_callback_inbox as inbox
    where inbox.process_status = 'dead'
      and (p_before is null or inbox.id < p_before)
    order by inbox.id desc
    limit least(p_limit, 500)
  )
  select
    dead.id, dead.provider, dead.received_at, dead.processed_at, dead.last_error_code, dead.retry_count, dead.signed,
    dead.provider_task_id, dead.client_request_id, attempt.id, attempt.task_id, dead.payload is not null
  from dead
  left join lateral (
    -- Row by row, so that only the rows shown are mapped.
    select mapped.attempt_id
    from aivedio.mapped_callbacks as mapped
    where mapped.id = dead.id
  ) as named on true
  left join aivedio.task_attempts as attempt on attempt.id = coalesce(dead.attempt_id, named.attempt_id)
  order by dead.id desc;
$list_dead_callbacks$;

comment on function aivedio.list_dead_callbacks is
  'Stage 90: callbacks that ended dead, newest first, with why, and which attempt they name now.';

grant execute on function aivedio.list_dead_callbacks to aivedio_operator;
