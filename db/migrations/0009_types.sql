-- migrate:up
-- 0009  The shapes that functions take and return.  Python mirrors them by these names.
set local role aivedio_owner;

create type aivedio.provider_observation as (
  provider             text,
  provider_event_id    text,
  dedup_key            text,
  provider_task_id     text,
  client_request_id    text,
  attempt_id           uuid,
  provider_sequence    bigint,
  provider_revision    bigint,
  provider_occurred_at timestamptz,
  received_at          timestamptz,
  normalized_status    text,
  provider_word        text,
  stage                text,
  progress             smallint,
  error_class          text,
  error_code           text,
  output_refs          jsonb,
  source               text,
  payload_hash         bytea,
  trace_id             text,
  inbox_id             bigint,
  error_detail         text
);
comment on type aivedio.provider_observation is
  'What one callback or poll says, normalised. normalized_status: queued, running, succeeded, failed, canceled, or null with the raw word in provider_word when the profile does not know it. progress 0 to 100. output_refs: array of {kind, url, expires_in_s}. error_detail: the provider''s own text, private.';

create type aivedio.applied as (
  verdict      text,
  task_id      uuid,
  attempt_id   uuid,
  task_version bigint,
  event_id     bigint,
  status       text,
  stage        text,
  progress     smallint
);
comment on type aivedio.applied is
  'What became of an observation or a command. event_id is null when nothing changed; status, stage, progress and task_version are the task''s after the call.';

create type aivedio.judgement as (
  verdict       text,
  new_status    text,
  progress_only boolean,
  discarded     boolean
);
comment on type aivedio.judgement is
  'What _judge decided: the verdict, and when it is applied the task''s new status. discarded: a success that the project''s cancel policy throws away.';

create type aivedio.received_callback as (
  ordinal               integer,
  provider              text,
  headers               jsonb,
  body                  text,
  body_hash             bytea,
  signature_key_version text,
  signed                boolean,
  token_hash            bytea,
  trace_id              text,
  error                 text
);
comment on type aivedio.received_callback is
  'One delivery as the webhook edge read it. headers: lower-case names of the profile''s allow-list; body: the raw body as text, null when it is not UTF-8; error: why the body is known to be unusable, else null.';

create type aivedio.callback_entry as (
  ordinal               integer,
  provider              text,
  dedup_key             text,
  provider_event_id     text,
  provider_task_id      text,
  client_request_id     text,
  payload               jsonb,
  problem               text,
  headers               jsonb,
  body_hash             bytea,
  signature_key_version text,
  token_hash            bytea,
  trace_id              text
);
comment on type aivedio.callback_entry is
  'A signed delivery as it goes into the inbox. problem: why it cannot be used; then there is no payload.';

create type aivedio.accepted_callback as (
  ordinal  integer,
  inbox_id bigint,
  is_new   boolean,
  is_dead  boolean
);
comment on type aivedio.accepted_callback is
  'Answer for the delivery with the same ordinal. inbox_id is null for a repeat; is_dead: stored, but unusable.';

create type aivedio.inbox_batch as (
  claimed integer,
  applied integer,
  ignored integer,
  retried integer,
  dead    integer,
  foreign_shards smallint[]
);
comment on type aivedio.inbox_batch is
  'What one call of process_inbox did. foreign_shards: shards that have work but are not the caller''s.';

create type aivedio.claimed_callback as (
  inbox_id   bigint,
  attempt_id uuid,
  agrees     boolean
);
comment on type aivedio.claimed_callback is
  'A callback that an inbox worker holds, with the attempt that it was mapped to. agrees is false when its clues name different attempts.';

create type aivedio.processed_callback as (
  inbox_id      bigint,
  attempt_id    uuid,
  status        text,
  verdict       text,
  error         text,
  emitted       uuid,
  alarm         text,
  alarm_subject text
);
comment on type aivedio.processed_callback is
  'What became of a callback: its new process status, the verdict, the task whose change it caused, an alarm to raise at the end of the batch.';

create type aivedio.webhook_profile as (
  provider  text,
  webhook   jsonb,
  local     boolean,
  revision  bigint
);
comment on type aivedio.webhook_profile is
  'What the webhook edge needs of a profile: its webhook section.';

create type aivedio.provider_request as (
  attempt_id  uuid,
  lease_token bigint,
  provider    text,
  credential  text,
  method      text,
  url         text,
  headers     jsonb,
  body        jsonb,
  auth        jsonb,
  timeout_s   real,
  max_bytes   integer,
  local       boolean,
  trace_id    text
);
comment on type aivedio.provider_request is
  'One HTTP request that an edge is to make, complete but for the secret: auth is {kind, secret (a reference), header}. The answer goes back with attempt_id and lease_token.';

create type aivedio.poll_answer as (
  meaning       text,
  observation   aivedio.provider_observation,
  http_status   integer,
  retry_after_s double precision,
  detail        text
);
comment on type aivedio.poll_answer is
  'What a poll''s outcome amounts to. meaning: body (with an observation), throttled, not_found, auth, refused, retry or malformed; detail: a short sample for the alarm.';

create type aivedio.submit_answer as (
  meaning          text,
  provider_task_id text,
  error_class      text,
  error_code       text,
  error_detail     text
);
comment on type aivedio.submit_answer is
  'What the answer to a submission amounts to. meaning: accepted (with the provider''s id), rejected, again (surely not accepted) or unknown.';

create type aivedio.outbox_message as (
  id          bigint,
  task_id     uuid,
  tag         text,
  body        jsonb,
  retry_count integer
);
comment on type aivedio.outbox_message is
  'One outbox row for the bus: key and message group are task_id, tag is the task''s status.';

create type aivedio.bus_message as (
  msg_id     bigint,
  read_count integer,
  task_id    uuid,
  tag        text,
  body       jsonb
);
comment on type aivedio.bus_message is
  'One message read from the embedded bus; invisible to others until its visibility timeout.';

create type aivedio.media_task as (
  operation_id    uuid,
  lease_token     bigint,
  task_id         uuid,
  attempt_id      uuid,
  tenant_id       uuid,
  project_id      uuid,
  operation_type  text,
  tries           integer,
  sources         jsonb,
  previous        jsonb,
  rescue_deadline timestamptz,
  trace_id        text
);
comment on type aivedio.media_task is
  'One claimed media operation. sources: the provider''s outputs [{kind, url}], only for backhaul; previous: the result of the operation before it.';

create type aivedio.stored_event as (
  event_id       bigint,
  prev_event_id  bigint,
  task_id        uuid,
  task_version   bigint,
  event_type     text,
  public_payload jsonb
);
comment on type aivedio.stored_event is 'One event as a reader of a project''s stream gets it.';

create type aivedio.event_page as (
  complete      boolean,
  reason        text,
  last_event_id bigint,
  more          boolean,
  events        aivedio.stored_event[]
);
comment on type aivedio.event_page is
  'Events after a cursor. complete: they continue the cursor without a hole; otherwise reason is pruned, ahead or unknown and the reader must take a snapshot and go on from last_event_id, the stream''s head. more: another page follows.';

create type aivedio.stream_head as (
  project_id    uuid,
  last_event_id bigint
);
comment on type aivedio.stream_head is 'A project and the last id of its stream.';

create type aivedio.redeemed_token as (
  tenant_id  uuid,
  project_id uuid,
  user_id    uuid,
  session_id text,
  claims     jsonb
);
comment on type aivedio.redeemed_token is 'Who a one-time token stands for.';

create type aivedio.signature_failure as (
  provider text,
  class    text,
  failures integer
);
comment on type aivedio.signature_failure is
  'Refused callbacks of the last minute, counted in memory by the webhook edge. class: missing, malformed, mismatch, too_old, too_new, no_key.';

create type aivedio.convergence as (
  day              date,
  provider         text,
  model            text,
  attempts         bigint,
  ended            bigint,
  callback_first   bigint,
  poll_first       bigint,
  callback_lead    interval,
  callback_coverage numeric,
  lag_p50          interval,
  lag_p95          interval,
  duration_p50     interval,
  duration_p95     interval,
  out_of_order     bigint,
  conflicts        bigint,
  stale_attempts   bigint,
  unknown_words    bigint,
  polls            bigint,
  polls_unchanged  numeric,
  polls_throttled  numeric
);
comment on type aivedio.convergence is
  'How one provider''s model behaved on one day (of the attempts'' creation). callback_first, poll_first: whose observation ended the attempt; callback_lead: median time by which the callback came before the poll that saw the same end; callback_coverage: share of ended attempts whose end a callback told; lag: received minus occurred by the provider''s clock; duration: from submission to the end; polls_unchanged and polls_throttled: shares of all polls.';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
