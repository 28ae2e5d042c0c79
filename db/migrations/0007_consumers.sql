-- migrate:up
-- 0007  What follows a change: media operations, the credit ledger, and the consumers of the bus.
set local role aivedio_owner;

create table aivedio.media_operations (
  id              uuid        primary key,
  task_id         uuid        not null references aivedio.generation_tasks (id),
  attempt_id      uuid        not null references aivedio.task_attempts (id),
  tenant_id       uuid        not null,
  project_id      uuid        not null,
  operation_type  text        not null,
  status          text        not null default 'pending',
  progress        smallint    not null default 0,
  tries           integer     not null default 0,
  next_try_at     timestamptz not null,
  lease_until     timestamptz,
  lease_token     bigint      not null default 0,
  leased_by       text,
  rescue_deadline timestamptz,
  error_class     text,
  result          jsonb,
  trace_id        text,
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  constraint media_operations_once unique (task_id, attempt_id, operation_type),
  constraint media_operations_type check (operation_type in ('backhaul', 'verify', 'transcode', 'publish')),
  constraint media_operations_status check (status in ('pending', 'running', 'done', 'failed')),
  constraint media_operations_progress check (progress between 0 and 100)
) with (fillfactor = 50);
create index media_operations_due on aivedio.media_operations (next_try_at) where status in ('pending', 'running');
comment on table aivedio.media_operations is
  'Work of the media plane on one attempt''s output, in the order backhaul, verify, transcode, publish: each done opens the next. rescue_deadline is when the provider deletes the source.';

create table aivedio.credit_ledger (
  id          bigint      generated always as identity primary key,
  tenant_id   uuid        not null,
  project_id  uuid        not null,
  task_id     uuid        not null references aivedio.generation_tasks (id),
  attempt_id  uuid        not null references aivedio.task_attempts (id),
  ledger_type text        not null,
  amount      bigint      not null,
  event_id    bigint,
  created_at  timestamptz not null,
  constraint credit_ledger_once unique (task_id, attempt_id, ledger_type),
  constraint credit_ledger_type check (ledger_type in ('reserve', 'settle', 'refund')),
  constraint credit_ledger_amount check (amount >= 0)
);
comment on table aivedio.credit_ledger is
  'Credits reserved, settled or refunded, once each per attempt. Append only; amounts in credits.';

create table aivedio.consumer_dedup (
  consumer   text        not null,
  event_id   bigint      not null,
  handled_at timestamptz not null,
  primary key (consumer, event_id)
);
comment on table aivedio.consumer_dedup is
  'Events that a consumer has handled, for consumers whose own write has no business key.';

create table aivedio.consumer_groups (
  name        text    primary key,
  tags        text[],
  max_tries   integer not null default 16,
  constraint consumer_groups_name check (name ~ '^[a-z][a-z0-9_]{0,30}$')
);
comment on table aivedio.consumer_groups is
  'Who receives messages from the bus, and of which task statuses (tags); null means all.';
insert into aivedio.consumer_groups (name, tags) values
  ('dispatcher', null),
  ('media',      array['provider_succeeded']),
  ('billing',    array['submitted', 'queued', 'running', 'provider_succeeded', 'ready', 'failed', 'canceled']);

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
