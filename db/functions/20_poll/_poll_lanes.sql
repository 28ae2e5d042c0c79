/*
 * Stage 20 · poll · _poll_lanes
 *
 * The tenants, providers and models that have scheduled polls, found by skipping through the index: a few
 * steps each, however many polls they have.
 *
 * Called by   _rank_polls
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._poll_lanes(
  out p_tenant   uuid,
  out p_provider text,
  out p_model    text
)
returns setof record
language sql
stable
set search_path = ''
as $_poll_lanes$
  with recursive lane (tenant_id, provider, model) as (
    (
      select attempt.tenant_id, attempt.provider, attempt.model
      from aivedio.task_attempts as attempt
      where attempt.next_poll_at is not null
      order by attempt.tenant_id, attempt.provider, attempt.model
      limit 1
    )
    union all
    select following.tenant_id, following.provider, following.model
    from lane
    cross join lateral (
      select attempt.tenant_id, attempt.provider, attempt.model
      from aivedio.task_attempts as attempt
      where attempt.next_poll_at is not null
        and (attempt.tenant_id, attempt.provider, attempt.model) > (lane.tenant_id, lane.provider, lane.model)
      order by attempt.tenant_id, attempt.provider, attempt.model
      limit 1
    ) as following
  )
  select lane.tenant_id, lane.provider, lane.model
  from lane;
$_poll_lanes$;

comment on function aivedio._poll_lanes is
  'Stage 20: each tenant, provider and model with scheduled polls, once.';
