/*
 * Stage 40 · state · _end_cases
 *
 * Closes the cases that only said that an attempt took too long, or could not be found: it came to its end.
 *
 * Called by   _update_attempt, resolve_case
 * Writes      aivedio.reconciliation_cases
 * Locks       the cases' rows: the caller holds the attempt
 */
create or replace function aivedio._end_cases(p_attempt uuid)
returns void
language plpgsql
volatile
set search_path = ''
as $_end_cases$
begin
  update aivedio.reconciliation_cases as known
  set state       = 'resolved',
      resolved_at = aivedio._clock(),
      resolution  = 'ended',
      resolved_by = 'aivedio',
      reason      = 'the attempt came to its end'
  where known.kind in ('overdue', 'not_found')
    and known.subject = p_attempt::text
    and known.state = 'open';
end;
$_end_cases$;

comment on function aivedio._end_cases is
  'Stage 40: resolve the open cases that waited only for an attempt''s end.';
