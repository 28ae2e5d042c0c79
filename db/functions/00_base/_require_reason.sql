/*
 * Stage 00 · base · _require_reason
 *
 * Refuses a command by hand without a reason: an audit that says only who and when explains nothing.
 *
 * Called by   start_attempt, adopt_attempt, record_submission, resolve_case, replay_callback, republish, reset_circuit,
 *             rotate_credential
 * Writes      nothing
 * Locks       nothing
 * Raises      VC413  no reason is given
 */
create or replace function aivedio._require_reason(p_reason text)
returns void
language plpgsql
immutable
set search_path = ''
as $_require_reason$
begin
  if coalesce(pg_catalog.btrim(p_reason), '') = '' then
    raise exception 'this command needs a reason'
      using errcode = 'VC413',
            hint    = 'Say why: the reason is kept with who and when.';
  end if;
end;
$_require_reason$;

comment on function aivedio._require_reason is
  'Stage 00: raise VC413 unless a reason is given.';
