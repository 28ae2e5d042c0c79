-- migrate:up
-- 0017  What has served its time goes: partitions end daily and are dropped, old callbacks are deleted.
set local role aivedio_owner;

insert into aivedio.settings (name, value, description) values
  ('partition_days',              '1',   'days after which a partition that holds rows is ended early, so that it can be dropped in time'),
  ('retention_days_outbox',       '3',   'days a published outbox row is kept before its partition may be dropped'),
  ('retention_days_observations', '180', 'days the ledger of observations is kept before its partition may be dropped'),
  ('retention_days_inbox',        '30',  'days a processed callback is recognised when it is repeated; a provider whose retries go on for longer has twice their span'),
  ('retention_days_dead',         '90',  'days a callback that ended dead is kept for review');

create type aivedio.partitioned_table as (
  parent    text,
  sequence  text,
  id_column text,
  at_column text,
  retention text
);
comment on type aivedio.partitioned_table is
  'A table that is partitioned by ranges of its id: the sequence that draws the ids, the columns that hold id and moment, and the setting that says for how many days rows are kept.';

create type aivedio.partition_range as (
  name text,
  low  bigint,
  high bigint
);
comment on type aivedio.partition_range is
  'A partition and the ids it holds: low <= id < high.';

create table aivedio.retention_floors (
  parent       text        primary key,
  floor        bigint      not null,
  announced_at timestamptz not null
);
comment on table aivedio.retention_floors is
  'Below which id a partitioned table holds nothing any more, or soon will not. Announced and committed before the partition is dropped.';

create table aivedio.stream_checks (
  singleton boolean     primary key default true,
  event_id  bigint      not null default 0,
  at        timestamptz not null default now(),
  constraint stream_checks_one_row check (singleton)
);
comment on table aivedio.stream_checks is
  'Up to which event the chains of the projects'' streams were checked.';
insert into aivedio.stream_checks default values;

create index provider_callback_inbox_received on aivedio.provider_callback_inbox (received_at);

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
