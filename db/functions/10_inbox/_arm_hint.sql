/*
 * Stage 10 · inbox · _arm_hint
 *
 * Notes that an attempt should be polled now, because somebody who knows its callback token called. There
 * is one such row per token. A repeat arms it again, under a new id: its old one may lie below the
 * low-water mark, where no scan would find it. While the poll of an earlier hint is still to come, or when none
 * will be, a repeat writes nothing: however many hint, an attempt costs one write per hint_interval_s.
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
  v_now constant timestamptz := aivedio._clock();
  v_id  bigint;
begin
  insert into aivedio.provider_callback_inbox as inbox (
    provider, dedup_key, received_at, signature_key_version, payload_hash, signed, callback_token_hash, trace_id
  )
  values (
    p_callback.provider, aivedio._hint_key(p_callback.token_hash), v_now, p_callback.signature_key_version,
    p_callback.body_hash, false, p_callback.token_hash, p_callback.trace_id
  )
  on conflict on constraint uq_provider_callback_dedup do update
  set id                    = default,
      received_at           = excluded.received_at,
      signature_key_version = excluded.signature_key_version,
      payload_hash          = excluded.payload_hash,
      trace_id              = excluded.trace_id,
      process_status        = 'pending',
      retry_count           = 0,
      next_retry_at         = null,
      processed_at          = null,
      verdict               = null
  where inbox.process_status in ('done', 'dead')
    and not exists (
      select 1
      from aivedio.task_attempts as attempt
      where attempt.callback_token_hash = p_callback.token_hash
        and attempt.provider = p_callback.provider
        and (attempt.terminal_at is not null or attempt.hinted_at > v_now)
    )
  returning inbox.id into v_id;

  return v_id;
end;
$_arm_hint$;

comment on function aivedio._arm_hint is
  'Stage 10: make an attempt''s hint row pending; answers its new id, or null when there is nothing to do.';
