/*
 * Stage 10 · inbox · _store_callbacks
 *
 * Inserts signed deliveries, in the order of their keys: two batches with the same keys then wait for each other
 * instead of deadlocking. What is absent from the insert's answer was there before, or is a twin within the batch.
 *
 * Called by   accept_callbacks
 * Writes      aivedio.provider_callback_inbox
 * Locks       the new rows; a concurrent twin waits for this transaction
 */
create or replace function aivedio._store_callbacks(p_entries aivedio.callback_entry[])
returns aivedio.accepted_callback[]
language plpgsql
volatile
set search_path = ''
as $_store_callbacks$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_answers aivedio.accepted_callback[];
begin
  with added as (
    insert into aivedio.provider_callback_inbox as inbox (
      provider, dedup_key, provider_event_id, provider_task_id, client_request_id, received_at,
      signature_key_version, payload_hash, payload, process_status, last_error_code, processed_at,
      headers, callback_token_hash, trace_id
    )
    select
      entry.provider, entry.dedup_key, entry.provider_event_id, entry.provider_task_id, entry.client_request_id, v_now,
      entry.signature_key_version, entry.body_hash, entry.payload,
      case when entry.problem is null then 'pending' else 'dead' end,
      entry.problem,
      case when entry.problem is not null then v_now end,
      entry.headers, entry.token_hash, entry.trace_id
    from pg_catalog.unnest(p_entries) as entry
    order by entry.provider, entry.dedup_key collate "C", entry.ordinal
    on conflict on constraint uq_provider_callback_dedup do nothing
    returning inbox.id, inbox.provider, inbox.dedup_key
  ),
  answer as (
    select
      entry.ordinal,
      entry.problem,
      case
        when pg_catalog.row_number() over (partition by entry.provider, entry.dedup_key order by entry.ordinal) = 1
        then added.id
      end as id
    from pg_catalog.unnest(p_entries) as entry
    left join added
      on added.provider = entry.provider
      and added.dedup_key = entry.dedup_key
  )
  select pg_catalog.array_agg(
    row(answer.ordinal, answer.id, answer.id is not null, answer.problem is not null)::aivedio.accepted_callback
  )
  into v_answers
  from answer;

  return v_answers;
end;
$_store_callbacks$;

comment on function aivedio._store_callbacks is
  'Stage 10: insert signed deliveries, each key once; answers by ordinal.';
