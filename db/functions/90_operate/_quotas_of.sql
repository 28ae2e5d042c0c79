/*
 * Stage 90 · operate · _quotas_of
 *
 * The token buckets that a poll of an attempt is paid from, those that exist.
 *
 * Called by   _waiting_reasons, why_waiting
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._quotas_of(p_attempt aivedio.task_attempts)
returns setof aivedio.poll_quotas
language sql
stable
set search_path = ''
as $_quotas_of$
  select quota.*
  from aivedio.poll_quotas as quota
  where (quota.level, quota.key) in (
    ('platform', '*'), ('tenant', p_attempt.tenant_id::text), ('provider', p_attempt.provider),
    ('model', p_attempt.provider || '/' || p_attempt.model)
  );
$_quotas_of$;

comment on function aivedio._quotas_of is
  'Stage 90: the poll buckets of an attempt''s platform, tenant, provider and model.';
