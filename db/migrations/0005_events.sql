-- migrate:up
-- 0005  What was committed: events for readers, outbox rows for the bus, the ledger of observations.
--
-- All three are partitioned by ranges of their id. The first ranges are made here; upkeep makes the
-- next ones. A unique key across partitions is impossible, so each partition carries its own, and the
-- version that rises by one under the task's lock makes it global. No foreign keys: a partition must
-- be droppable at any time.
set local role aivedio_owner;

create sequence aivedio.task_event_ids maxvalue 9007199254740991;
comment on sequence aivedio.task_event_ids is
  'Event ids, drawn under the project''s stream lock. Below 2^53, so that JavaScript holds them exactly. Never cached: a cached block would be used out of order.';

create table aivedio.task_events (
  event_id       bigint      not null,
  prev_event_id  bigint      not null,
  tenant_id      uuid        not null,
  project_id     uuid        not null,
  task_id        uuid        not null,
  attempt_id     uuid,
  task_version   bigint      not null,
  event_type     text        not null,
  public_payload jsonb       not null,
  source         text        not null,
  occurred_at    timestamptz,
  created_at     timestamptz not null default now(),
  primary key (event_id),
  constraint task_events_chain check (prev_event_id < event_id),
  constraint task_events_type check (event_type in ('task.status.changed', 'task.progress.changed')),
  constraint task_events_source check (source in ('webhook', 'poll', 'reconcile', 'command', 'submit', 'media')),
  constraint task_events_public_size check (pg_catalog.octet_length(public_payload::text) <= 4096)
) partition by range (event_id);
create index task_events_project_cursor on aivedio.task_events (project_id, event_id);
comment on table aivedio.task_events is
  'Every committed change of a task, as browsers may see it. prev_event_id is the project''s previous event: the chain proves that a reader missed nothing. Append only.';

create sequence aivedio.outbox_ids maxvalue 9007199254740991;
create table aivedio.outbox_events (
  id                bigint      not null,
  aggregate_type    text        not null,
  aggregate_id      uuid        not null,
  aggregate_version bigint      not null,
  event_type        text        not null,
  payload           jsonb       not null,
  publish_status    text        not null default 'pending',
  retry_count       integer     not null default 0,
  next_retry_at     timestamptz,
  created_at        timestamptz not null default now(),
  published_at      timestamptz,
  shard             smallint    not null,
  last_error        text,
  primary key (id),
  constraint outbox_events_status check (publish_status in ('pending', 'published', 'parked'))
) partition by range (id);
create index outbox_events_pending on aivedio.outbox_events (shard, id) where publish_status = 'pending';
create index outbox_events_delayed on aivedio.outbox_events (shard, aggregate_id)
  where publish_status = 'pending' and next_retry_at is not null;
create index outbox_events_parked on aivedio.outbox_events (aggregate_id) where publish_status = 'parked';
comment on table aivedio.outbox_events is
  'What the relay still owes the bus. Written in the transaction of its event; marked after the broker''s acknowledgement; a row that cannot be sent is parked and alarmed.';

create sequence aivedio.observation_ids maxvalue 9007199254740991;
create table aivedio.observations (
  id                   bigint      not null,
  judged_at            timestamptz not null,
  received_at          timestamptz not null,
  tenant_id            uuid,
  project_id           uuid,
  task_id              uuid,
  attempt_id           uuid,
  provider             text        not null,
  source               text        not null,
  verdict              text        not null,
  normalized_status    text,
  provider_word        text,
  stage                text,
  progress             smallint,
  provider_sequence    bigint,
  provider_occurred_at timestamptz,
  lag                  interval,
  error_class          text,
  error_code           text,
  task_version         bigint,
  event_id             bigint,
  inbox_id             bigint,
  payload_hash         bytea,
  trace_id             text,
  primary key (id),
  constraint observations_verdict check (verdict in (
    'applied', 'coalesced', 'duplicate', 'stale_attempt', 'stale_sequence', 'stale_status',
    'after_terminal', 'conflict', 'unknown_word', 'orphan', 'hint'
  ))
) partition by range (id);
create index observations_task on aivedio.observations (task_id, id);
comment on table aivedio.observations is
  'The ledger of convergence: every observation that changed something or was refused, with the verdict, its source and its lag (received minus occurred by the provider''s clock). Polls that changed nothing are counted on the attempt instead.';

-- Each partition gets what the parent cannot hold: its own unique key. aivedio.create_partition
-- does the same for later ranges, by ATTACH.
do $partitions$
declare
  v_size constant bigint := (select value::bigint from aivedio.settings where name = 'partition_ids');
  v_low  bigint;
begin
  for v_number in 0 .. 3 loop
    v_low := v_number * v_size;
    execute pg_catalog.format(
      'create table aivedio.task_events_p%1$s partition of aivedio.task_events for values from (%1$s) to (%2$s)',
      v_low, v_low + v_size
    );
    execute pg_catalog.format(
      'create unique index task_events_p%1$s_version on aivedio.task_events_p%1$s (task_id, task_version)', v_low
    );
    execute pg_catalog.format(
      'create table aivedio.outbox_events_p%1$s partition of aivedio.outbox_events for values from (%1$s) to (%2$s) with (fillfactor = 70)',
      v_low, v_low + v_size
    );
    execute pg_catalog.format(
      'create unique index outbox_events_p%1$s_version on aivedio.outbox_events_p%1$s (aggregate_id, aggregate_version)', v_low
    );
    execute pg_catalog.format(
      'create table aivedio.observations_p%1$s partition of aivedio.observations for values from (%1$s) to (%2$s)',
      v_low, v_low + v_size
    );
  end loop;
end;
$partitions$;

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
