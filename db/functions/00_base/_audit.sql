/*
 * Stage 00 · base · _audit
 *
 * Records what somebody did by hand.
 *
 * Called by   every command of operators and applications
 * Writes      aivedio.operator_actions
 * Locks       nothing
 * Raises      VC002  nobody is named
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
  -- An audit that does not say who explains nothing.
  if coalesce(pg_catalog.btrim(p_who), '') = '' then
    raise exception 'this command needs to know who gives it'
      using errcode = 'VC002',
            detail  = pg_catalog.format('action %s', p_action),
            hint    = 'Say who: a name, an address or the id of a user, at most 300 characters.';
  end if;

  insert into aivedio.operator_actions (at, actor, action, subject, reason, detail)
  values (
    aivedio._clock(), pg_catalog.left(p_who, 300), p_action, p_subject, pg_catalog.left(p_why, 4000), p_detail
  );
end;
$_audit$;

comment on function aivedio._audit is
  'Stage 00: add a row to the audit of operators.';
