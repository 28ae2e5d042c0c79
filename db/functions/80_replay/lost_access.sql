/*
 * Stage 80 · replay · lost_access
 *
 * Which of many grants no longer hold: may_access for all open streams of a gateway in one question.
 * The arrays are parallel; the answer is the places, from 1, of the grants that are void.
 *
 * Called by   edge/gateway/streams.py, once a heartbeat and when somebody's access is revoked
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.lost_access(
  p_tenants   uuid[],
  p_projects  uuid[],
  p_users     uuid[],
  p_sessions  text[],
  p_issued_at timestamptz[],
  p_claimed   boolean[]
)
returns setof integer
language sql
stable
security definer  -- the gateway asks without reading members and revocations
set search_path = ''
as $lost_access$
  select held.place::integer
  from rows from (
    pg_catalog.unnest(p_tenants), pg_catalog.unnest(p_projects), pg_catalog.unnest(p_users),
    pg_catalog.unnest(p_sessions), pg_catalog.unnest(p_issued_at), pg_catalog.unnest(p_claimed)
  ) with ordinality as held (tenant, project, usr, session, issued_at, claimed, place)
  where aivedio.may_access(held.tenant, held.project, held.usr, held.session, held.issued_at, held.claimed) is null;
$lost_access$;

comment on function aivedio.lost_access is
  'Stage 80: the places of those grants, given as parallel arrays, for which may_access says no.';

grant execute on function aivedio.lost_access to aivedio_gateway;
