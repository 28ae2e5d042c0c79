-- migrate:up
-- 0002  What every stage leans on: settings, the server's identity, queue marks, alarms, cases, the audit of operators.
set local role aivedio_owner;

create table aivedio.settings (
  name        text        primary key,
  value       jsonb       not null,
  description text        not null,
  updated_at  timestamptz not null default now()
);
comment on table aivedio.settings is
  'What a DBA may tune while the system runs. Each row says its unit and meaning.';

insert into aivedio.settings (name, value, description) values
  ('partition_ids',            '100000000', 'ids per partition of task_events, outbox_events and observations; at least a day at peak'),
  ('partitions_ahead',         '3',         'empty partitions kept ahead of each sequence; an alarm is raised below two'),
  ('retention_days_events',    '30',        'days an event can be replayed before its partition may be dropped'),
  ('retention_days_payload',   '7',         'days a processed callback keeps its payload'),
  ('unknown_after_polls',      '8',         'failed polls in a row after which a task becomes provider_status_unknown'),
  ('orphan_retries',           '12',        'tries to map a callback to an attempt before it ends dead'),
  ('orphan_retry_cap_s',       '600',       'seconds, the longest wait between two tries to map a callback'),
  ('poison_retries',           '5',         'tries to publish an outbox row before it is parked'),
  ('submit_lease_s',           '120',       'seconds after which a submission without an answer counts as unknown'),
  ('submit_retries',           '5',         'tries to submit when the request surely did not reach the provider'),
  ('cancel_lease_s',           '60',        'seconds a claimed cancel stays reserved for its worker'),
  ('cancel_retries',           '8',         'tries to cancel at the provider before it is given up'),
  ('poll_lease_s',             '60',        'seconds a claimed poll stays reserved for its worker'),
  ('poll_rate_platform',       '200',       'polls per second, all providers together'),
  ('poll_rate_tenant',         '100',       'polls per second, each tenant'),
  ('hint_interval_s',          '5',         'seconds, the least time between two polls of an attempt that hints ask for'),
  ('signature_alarm_after',    '5',         'refused signatures of one provider in one report that raise an alarm'),
  ('media_lease_s',            '60',        'seconds a claimed media operation stays reserved without a report'),
  ('media_retries',            '5',         'tries of one media operation before its task fails'),
  ('input_max_bytes',          '65536',     'largest input of a task, in bytes of JSON'),
  ('stream_token_s',           '60',        'seconds a one-time token can be redeemed');

create table aivedio.server_identity (
  singleton         boolean     primary key default true,
  database_id       uuid        not null default gen_random_uuid(),
  system_identifier bigint      not null,
  timeline          integer     not null,
  since             timestamptz not null default now(),
  constraint server_identity_one_row check (singleton)
);
comment on table aivedio.server_identity is
  'Which server wrote the last event. A restored copy differs, and event ids must then jump before the next one is drawn. database_id names channels outside the database.';
insert into aivedio.server_identity (system_identifier, timeline)
select system.system_identifier, checkpoint.timeline_id
from pg_catalog.pg_control_system() as system, pg_catalog.pg_control_checkpoint() as checkpoint;

create table aivedio.queue_marks (
  queue    text     not null,
  shard    smallint not null,
  low      bigint   not null default 0,
  high     bigint,
  high_xid xid8,
  noted_at timestamptz,
  primary key (queue, shard)
) with (fillfactor = 30);
comment on table aivedio.queue_marks is
  'Where a queue scan may start. No unfinished row of the queue has an id at or below low, not even one whose writer has yet to commit. high and high_xid are the candidate that becomes low once every transaction up to high_xid is over.';

create table aivedio.alarms (
  id          bigint      generated always as identity primary key,
  kind        text        not null,
  subject     text        not null,
  detail      jsonb       not null default '{}',
  count       bigint      not null default 1,
  first_at    timestamptz not null,
  last_at     timestamptz not null,
  resolved_at timestamptz
) with (fillfactor = 70);
create unique index alarms_one_open on aivedio.alarms (kind, subject) where resolved_at is null;
comment on table aivedio.alarms is
  'What an operator should look at: one open row per kind and subject, counting repeats.';

create table aivedio.reconciliation_cases (
  id          uuid        primary key,
  kind        text        not null,
  subject     text        not null,
  tenant_id   uuid,
  project_id  uuid,
  task_id     uuid,
  attempt_id  uuid,
  provider    text,
  evidence    jsonb       not null default '[]',
  state       text        not null default 'open',
  opened_at   timestamptz not null,
  last_at     timestamptz not null,
  resolved_at timestamptz,
  resolution  text,
  resolved_by text,
  reason      text,
  constraint reconciliation_cases_kind check (kind in (
    'conflict', 'stale_success', 'submit_unknown', 'lost_submit', 'overdue', 'orphan', 'mapping', 'billing', 'not_found'
  )),
  constraint reconciliation_cases_state check (state in ('open', 'resolved')),
  constraint reconciliation_cases_resolved check (
    (state = 'resolved') = (resolved_at is not null and resolution is not null and resolved_by is not null)
  )
);
create unique index reconciliation_cases_one_open on aivedio.reconciliation_cases (kind, subject) where state = 'open';
create index reconciliation_cases_task on aivedio.reconciliation_cases (task_id) where task_id is not null;
create index reconciliation_cases_attempt on aivedio.reconciliation_cases (attempt_id)
  where attempt_id is not null and state = 'open';
comment on table aivedio.reconciliation_cases is
  'What the state machine refused to decide alone: contradictory ends, results of old attempts, submissions without an answer. Evidence is a list of facts; a person or a later observation resolves it.';

create table aivedio.operator_actions (
  id      bigint      generated always as identity primary key,
  at      timestamptz not null,
  actor   text        not null,
  action  text        not null,
  subject text        not null,
  reason  text        not null,
  detail  jsonb       not null default '{}'
);
create index operator_actions_subject on aivedio.operator_actions (subject, at);
comment on table aivedio.operator_actions is 'Who changed what by hand, when and why. Append only.';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
