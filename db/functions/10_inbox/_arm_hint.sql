/*
 * Stage 10 · inbox · _arm_hint
 *
 * Notes that an attempt should be polled now, because somebody who knows its callback token called. There
 * is one such row per token. A repeat arms it again, under a new id: its old one may lie below the
 * low-water mark, where no scan would find it.
 *
 * Called by   _store_hints
 * Writes      aivedio.provider_callback_inbox
 * Locks       the hint's row
 */
create or replace function aivedio._arm_hint(p_callback aivedio.received_callback)
returns bigint
language plpgsql
volatile
set search_path = ''
as $_arm_hint$
declare
  v_id bigint;
begin
  insert into aivedio.provider_callback_inbox as inbox (
    provider, dedup_key, received_at, payload_hash, signed, callback_token_hash, trace_id
  )
  values (
    p_callback.provider, aivedio._hint_key(p_callback.token_hash), aivedio._clock(),
    p_callback.body_hash, false, p_callback.token_hash, p_callback.trace_id
  )
  on conflict on constraint uq_provider_callback_dedup do update
  set id             = default,
      received_at    = excluded.received_at,
      payload_hash   = excluded.payload_hash,
      trace_id       = excluded.trace_id,
      process_status = 'pending',
      retry_count    = 0,
      next_retry_at  = null,
      processed_at   = null,
      verdict        = null
  where inbox.process_status in ('done', 'dead')
  returning inbox.id into v_id;

  return v_id;
end;
$_arm_hint$;

comment on function aivedio._arm_hint is
  'Stage 10: make an attempt''s hint row pending; answers its new id, or null when it was pending already.';
