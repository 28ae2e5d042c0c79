-- migrate:up
-- 0015  Whose turn to be polled it is, found within each tenant, provider and model, and how well callbacks cover it.
set local role aivedio_owner;

alter table aivedio.task_attempts add column poll_first boolean not null default false;
comment on column aivedio.task_attempts.poll_first is
  'Whether the next poll goes before others: the job was nearly finished, or somebody watched its project, when it was scheduled.';

drop index aivedio.task_attempts_poll_due;
create index task_attempts_poll_due on aivedio.task_attempts (tenant_id, provider, model, next_poll_at)
  where next_poll_at is not null;
create index task_attempts_poll_first on aivedio.task_attempts (tenant_id, provider, model, next_poll_at)
  where next_poll_at is not null and poll_first;
create index task_attempts_ended on aivedio.task_attempts (provider, terminal_at)
  where terminal_at is not null;

create table aivedio.callback_coverage (
  provider    text             primary key references aivedio.providers (name),
  measured_at timestamptz      not null,
  ends        integer          not null,
  covered     integer          not null,
  coverage    double precision not null,
  delay_p50_s double precision,
  delay_p95_s double precision,
  constraint callback_coverage_counts check (ends > 0 and covered between 0 and ends),
  constraint callback_coverage_share check (coverage between 0 and 1)
);
comment on table aivedio.callback_coverage is
  'How many of a provider''s latest ends its callbacks told, and how long after the provider''s own time they came. The better they cover, the rarer are polls; a row that was not measured lately counts for nothing.';

insert into aivedio.settings (name, value, description) values
  ('poll_sparse_factor',      '4',   'how many times longer polls wait where callbacks tell every end; 1 for no difference'),
  ('callback_coverage_low',   '0.8', 'share of ends told by callbacks below which polls are as close as the profile says, and an alarm is raised'),
  ('callback_coverage_ends',  '200', 'latest ends of a provider that its coverage is measured by'),
  ('callback_grace_s',        '60',  'seconds after an end until a callback of it counts as missing');

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
