/*
 * Stage 70 · consumers · claim_media
 *
 * Leases due operations to a worker of the media plane. A lease that ran out makes the operation due again;
 * the token tells the old worker's late report from the new one's. A claim emits nothing: the first report does.
 * An operation whose task has gone another way is not handed out but given up: its output would be fetched for nobody.
 *
 * Called by   the media plane, as aivedio_consumer
 * Writes      aivedio.media_operations
 * Locks       the claimed operations, with skip locked
 */
create or replace function aivedio.claim_media(
  p_worker text,
  p_limit  integer default 4
)
returns setof aivedio.media_task
language plpgsql
volatile
security definer  -- the media plane claims operations without writing the table
set search_path = ''
as $claim_media$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_lease constant interval := pg_catalog.make_interval(secs => aivedio._setting('media_lease_s')::double precision);
  v_tries constant integer := aivedio._setting('media_retries');
begin
  with unwanted as materialized (
    select operation.id
    from aivedio.media_operations as operation
    join aivedio.generation_tasks as task on task.id = operation.task_id
    where operation.status in ('pending', 'running')
      and operation.next_try_at <= v_now
      and (operation.lease_until is null or operation.lease_until < v_now)
      and (
        task.current_attempt_id <> operation.attempt_id
        or task.status not in ('provider_succeeded', 'processing_media')
      )
    limit p_limit
    for no key update of operation skip locked
  )
  update aivedio.media_operations as operation
  set status      = 'failed',
      error_class = 'not_wanted',
      lease_until = null,
      updated_at  = v_now
  from unwanted
  where operation.id = unwanted.id;

  return query
  with due as materialized (
    select operation.id
    from aivedio.media_operations as operation
    join aivedio.generation_tasks as task
      on task.id = operation.task_id
      and task.current_attempt_id = operation.attempt_id
      and task.status in ('provider_succeeded', 'processing_media')
    where operation.status in ('pending', 'running')
      and operation.next_try_at <= v_now
      and (operation.lease_until is null or operation.lease_until < v_now)
      -- A worker that dies on a file must not die on it for ever: upkeep gives it up.
      and operation.tries < v_tries
    order by operation.rescue_deadline nulls last, operation.next_try_at
    limit p_limit
    for no key update of operation skip locked
  ),
  leased as (
    update aivedio.media_operations as operation
    set status      = 'running',
        tries       = operation.tries + 1,
        lease_until = v_now + v_lease,
        lease_token = operation.lease_token + 1,
        leased_by   = p_worker,
        updated_at  = v_now
    from due
    where operation.id = due.id
    returning operation.*
  )
  select
    leased.id, leased.lease_token, leased.task_id, leased.attempt_id, leased.tenant_id, leased.project_id,
    leased.operation_type, leased.tries,
    case when leased.operation_type = 'backhaul' then (
      select pg_catalog.jsonb_agg(
        pg_catalog.jsonb_build_object('kind', output.kind, 'url', output.url) order by output.ordinal
      )
      from aivedio.attempt_outputs as output
      where output.attempt_id = leased.attempt_id
        and output.url is not null
    ) end,
    (
      select earlier.result
      from aivedio.media_operations as earlier
      where earlier.task_id = leased.task_id
        and earlier.attempt_id = leased.attempt_id
        and earlier.status = 'done'
      order by earlier.updated_at desc
      limit 1
    ),
    leased.rescue_deadline, leased.trace_id
  from leased
  order by leased.rescue_deadline nulls last, leased.id;
end;
$claim_media$;

comment on function aivedio.claim_media is
  'Stage 70: lease due media operations, nearest rescue deadline first; a report extends the lease.';

grant execute on function aivedio.claim_media to aivedio_consumer;
