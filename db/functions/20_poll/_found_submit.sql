/*
 * Stage 20 · poll · _found_submit
 *
 * Closes the case of a submission whose outcome was unknown: now it is known that the provider has the job.
 *
 * Called by   _accept_submit, _update_attempt, holding stream → task → attempt
 * Writes      aivedio.reconciliation_cases
 * Locks       the case's row
 */
create or replace function aivedio._found_submit(
  p_attempt uuid,
  p_source  text
)
returns void
language plpgsql
volatile
set search_path = ''
as $_found_submit$
begin
  update aivedio.reconciliation_cases as known
  set state       = 'resolved',
      resolved_at = aivedio._clock(),
      resolved_by = p_source,
      resolution  = 'accepted',
      reason      = 'the provider has the job after all'
  where known.kind = 'submit_unknown'
    and known.subject = p_attempt::text
    and known.state = 'open';
end;
$_found_submit$;

comment on function aivedio._found_submit is
  'Stage 20: resolve the open case of an unknown submission that turned out to be accepted.';
