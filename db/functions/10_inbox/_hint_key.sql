/*
 * Stage 10 · inbox · _hint_key
 *
 * The inbox key of a hint: one row per callback token. The prefix keeps hints apart from the event ids
 * of signed deliveries.
 *
 * Called by   _store_hints, _arm_hint
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._hint_key(p_token_hash bytea)
returns text
language plpgsql
immutable
set search_path = ''
as $_hint_key$
begin
  return 'hint:' || pg_catalog.encode(p_token_hash, 'hex');
end;
$_hint_key$;

comment on function aivedio._hint_key is
  'Stage 10: the inbox key of the hint that belongs to a callback token.';
