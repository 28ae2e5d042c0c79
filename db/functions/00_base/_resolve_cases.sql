/*
 * Stage 00 · base · _resolve_cases
 *
 * Closes the open case of a kind and subject, if there is one.
 *
 * Called by   _accept_submit, _delay_submit, _reject_submit, _apply_locked, adopt_attempt, resolve_case
 * Writes      aivedio.reconciliation_cases
 * Locks       the case's row, after stream, task and attempt
 */
create or replace function aivedio._resolve_cases(
  p_kind       text,
  p_subject    text,
  p_resolution text,
  p_who        text,
  p_why        text
)
returns void
language plpgsql
volatile
set search_path = ''
as $_resolve_cases$
begin
  update aivedio.reconciliation_cases as known
  set state       = 'resolved',
      resolved_at = aivedio._clock(),
      resolution  = p_resolution,
      resolved_by = p_who,
      reason      = p_why
  where known.kind = p_kind
    and known.subject = p_subject
    and known.state = 'open';
end;
$_resolve_cases$;

comment on function aivedio._resolve_cases is
  'Stage 00: resolve the open case of a kind and subject.';
