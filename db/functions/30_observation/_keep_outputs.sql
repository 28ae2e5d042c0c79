/*
 * Stage 30 · observation · _keep_outputs
 *
 * Stores the output URLs of a success, which no event and no message ever carries. A repeat brings fresh
 * URLs for outputs that are still wanted. The provider deletes a file its lifetime after the job's end; when
 * the job ended is known only by the provider's clock, so the earlier of both clocks counts.
 *
 * Called by   _process_callback, settle_poll
 * Writes      aivedio.attempt_outputs
 * Locks       the outputs' rows, under the attempt's lock
 */
create or replace function aivedio._keep_outputs(p_observation aivedio.provider_observation)
returns void
language plpgsql
volatile
set search_path = ''
as $_keep_outputs$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_ended constant timestamptz := least(p_observation.provider_occurred_at, p_observation.received_at, v_now);
begin
  insert into aivedio.attempt_outputs as output (attempt_id, ordinal, kind, url, expires_at, created_at)
  select
    p_observation.attempt_id,
    item.place::smallint,
    item.value ->> 'kind',
    item.value ->> 'url',
    v_ended + pg_catalog.make_interval(secs => (item.value ->> 'expires_in_s')::double precision),
    v_now
  from pg_catalog.jsonb_array_elements(p_observation.output_refs) with ordinality as item (value, place)
  -- After publication nobody wants them any more, whichever attempt they belong to.
  where not exists (
    select 1
    from aivedio.task_attempts as attempt
    join aivedio.generation_tasks as task on task.id = attempt.task_id
    where attempt.id = p_observation.attempt_id
      and task.status = 'ready'
  )
  on conflict (attempt_id, ordinal) do update
  set kind       = excluded.kind,
      url        = excluded.url,
      expires_at = excluded.expires_at
  where output.purged_at is null
    and output.url is distinct from excluded.url;
end;
$_keep_outputs$;

comment on function aivedio._keep_outputs is
  'Stage 30: keep the output URLs of a success, privately, with the time at which the provider deletes them.';
