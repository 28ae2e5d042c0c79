/*
 * Stage 10 · inbox · _store_hints
 *
 * Arms the hint of each delivery whose token belongs to an attempt, in the order of the keys. Others leave no trace.
 * A signed delivery that was stored dead has its answer already: its hint answers without an ordinal.
 *
 * Called by   accept_callbacks
 * Writes      aivedio.provider_callback_inbox
 * Locks       the hints' rows
 */
create or replace function aivedio._store_hints(p_callbacks aivedio.received_callback[])
returns aivedio.accepted_callback[]
language plpgsql
volatile
set search_path = ''
as $_store_hints$
declare
  v_hint    record;
  v_answer  aivedio.accepted_callback;
  v_answers aivedio.accepted_callback[] := '{}'::aivedio.accepted_callback[];
begin
  if p_callbacks = '{}' then
    return v_answers;
  end if;

  for v_hint in
    select callback, callback.ordinal, callback.signed
    from pg_catalog.unnest(p_callbacks) as callback
    join aivedio.task_attempts as attempt
      on attempt.callback_token_hash = callback.token_hash
      and attempt.provider = callback.provider
    order by callback.provider, aivedio._hint_key(callback.token_hash) collate "C", callback.ordinal
  loop
    v_answer := null;
    v_answer.inbox_id := aivedio._arm_hint(v_hint.callback);
    v_answer.is_new := v_answer.inbox_id is not null;
    v_answer.is_dead := false;
    if not v_hint.signed then
      v_answer.ordinal := v_hint.ordinal;
    end if;
    v_answers := v_answers || v_answer;
  end loop;

  return v_answers;
end;
$_store_hints$;

comment on function aivedio._store_hints is
  'Stage 10: arm the hints of deliveries with a known token; answers by ordinal for the unsigned ones.';
