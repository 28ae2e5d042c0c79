/*
 * Stage 90 · operate · _resolutions
 *
 * What a case may be resolved as: kept and failed by resolve_case, adopted by adopt_attempt. Nobody can keep what is
 * not known, and only a success can be adopted.
 *
 * Called by   list_cases, resolve_case
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._resolutions(
  p_case    aivedio.reconciliation_cases,
  p_attempt aivedio.task_attempts
)
returns text[]
language plpgsql
immutable
set search_path = ''
as $_resolutions$
declare
  v_unknown constant boolean := p_case.kind in ('submit_unknown', 'lost_submit', 'not_found');
  v_may     text[] := '{}'::text[];
begin
  if not v_unknown or p_attempt.terminal_at is not null then
    v_may := v_may || 'kept'::text;
  end if;
  if v_unknown or p_case.kind = 'overdue' then
    v_may := v_may || 'failed'::text;
  end if;
  if p_case.kind = 'stale_success' and p_attempt.status = 'succeeded' then
    v_may := v_may || 'adopted'::text;
  end if;
  return v_may;
end;
$_resolutions$;

comment on function aivedio._resolutions is
  'Stage 90: what a case may be resolved as: kept, failed, adopted.';
