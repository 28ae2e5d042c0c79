/*
 * Stage 20 · poll · _note_case
 *
 * Opens a case about an attempt unless it is open already: a condition that every poll meets again is one fact.
 *
 * Called by   _reschedule_poll, _watch_attempts
 * Writes      aivedio.reconciliation_cases
 * Locks       the case's row
 */
create or replace function aivedio._note_case(
  p_kind     text,
  p_attempt  aivedio.task_attempts,
  p_evidence jsonb
)
returns void
language plpgsql
volatile
set search_path = ''
as $_note_case$
begin
  perform 1
  from aivedio.reconciliation_cases as known
  where known.kind = p_kind
    and known.subject = p_attempt.id::text
    and known.state = 'open';

  if not found then
    perform aivedio._open_case(p_kind, p_attempt.id::text, p_attempt, null, p_evidence);
  end if;
end;
$_note_case$;

comment on function aivedio._note_case is
  'Stage 20: open a case about an attempt, once.';
