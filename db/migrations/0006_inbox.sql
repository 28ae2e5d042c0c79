-- migrate:up
-- 0006  The callback inbox: one row per distinct delivery, stored before the provider is answered.
set local role aivedio_owner;

create table aivedio.provider_callback_inbox (
  id                    bigint      generated always as identity primary key,
  provider              text        not null,
  dedup_key             text        not null collate "C",
  provider_event_id     text,
  provider_task_id      text,
  client_request_id     text,
  provider_occurred_at  timestamptz,
  received_at           timestamptz not null default now(),
  signature_key_version text,
  payload_hash          bytea       not null,
  payload               jsonb,
  process_status        text        not null default 'pending',
  retry_count           integer     not null default 0,
  next_retry_at         timestamptz,
  last_error_code       text,
  processed_at          timestamptz,
  headers               jsonb       not null default '{}',
  signed                boolean     not null default true,
  callback_token_hash   bytea,
  attempt_id            uuid,
  verdict               text,
  trace_id              text,
  constraint uq_provider_callback_dedup unique (provider, dedup_key),
  constraint provider_callback_inbox_status check (process_status in ('pending', 'retry', 'done', 'dead'))
) with (fillfactor = 80);
create index idx_callback_inbox_pending on aivedio.provider_callback_inbox (id)
  where process_status in ('pending', 'retry');
create index provider_callback_inbox_attempt on aivedio.provider_callback_inbox (attempt_id)
  where attempt_id is not null;
create index provider_callback_inbox_purge on aivedio.provider_callback_inbox (processed_at)
  where payload is not null and processed_at is not null;
comment on table aivedio.provider_callback_inbox is
  'Verified callbacks. A repeat never makes a second row. The row with its key outlives the provider''s retry span; its payload is emptied earlier. The row''s lock is its lease: claim and effect are one transaction.';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
