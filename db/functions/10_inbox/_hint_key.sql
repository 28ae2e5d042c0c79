/*
 * Stage 10 · inbox · _hint_key
 *
 * The inbox key of a hint: one row per callback token. The prefix keeps hints apart from the event ids
 * of signed deliveries.
 *
 * Called by   accept_callbacks, _arm_hint, _callback_key
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._hint_key(p_token_hash bytea)
returns text
language sql
immutable
parallel safe
set search_path = ''
as $_hint_key$
  select 'hint:' || pg_catalog.encode(p_token_hash, 'hex');
$_hint_key$;

comment on function aivedio._hint_key is
  'Stage 10: the inbox key of the hint that belongs to a callback token.';
