/*
 * Stage 00 · base · _audit
 *
 * Records what somebody did by hand.
 *
 * Called by   every command of operators and applications
 * Writes      aivedio.operator_actions
 * Locks       nothing
 */
create or replace function aivedio._audit(
  p_who     text,
  p_action  text,
  p_subject text,
  p_why     text,
  p_detail  jsonb default '{}'
)
returns void
language plpgsql
volatile
set search_path = ''
as $_audit$
begin
  insert into aivedio.operator_actions (at, actor, action, subject, reason, detail)
  values (aivedio._clock(), p_who, p_action, p_subject, p_why, p_detail);
end;
$_audit$;

comment on function aivedio._audit is
  'Stage 00: add a row to the audit of operators.';
