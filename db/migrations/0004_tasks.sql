-- migrate:up
-- 0004  The hot rows: a project's stream, its tasks, their attempts, and the state machine as rows.
--
-- Fillfactor 50 on the three hot tables keeps their updates heap-only, so no index is touched
-- while a job runs.
set local role aivedio_owner;

create table aivedio.project_streams (
  project_id    uuid   primary key,
  tenant_id     uuid   not null,
  last_event_id bigint not null default 0
) with (fillfactor = 50);
comment on table aivedio.project_streams is
  'The head of each project''s event stream. Locked first by every change, so that event ids become visible in order. Never deleted; nothing else lives in this row.';

create table aivedio.project_settings (
  project_id        uuid     primary key,
  cancel_policy     text     not null default 'keep',
  progress_step     smallint not null default 5,
  progress_interval interval not null default interval '1 second',
  constraint project_settings_cancel_policy check (cancel_policy in ('keep', 'discard')),
  constraint project_settings_step check (progress_step between 1 and 100),
  constraint project_settings_interval check (progress_interval between interval '0' and interval '1 hour')
);
comment on table aivedio.project_settings is
  'A project''s own rules. cancel_policy: what a success after a cancel request becomes, keep the result or discard it. A missing row means the defaults.';

create table aivedio.project_watchers (
  project_id uuid        primary key,
  until      timestamptz not null
) with (fillfactor = 50);
comment on table aivedio.project_watchers is 'Projects that somebody looks at now, until when: their polls go first.';

create table aivedio.generation_tasks (
  id                  uuid        primary key,
  tenant_id           uuid        not null,
  project_id          uuid        not null,
  user_id             uuid        not null,
  status              text        not null default 'created',
  stage               text        not null default 'created',
  progress            smallint,
  version             bigint      not null default 0,
  last_event_id       bigint,
  current_attempt_id  uuid,
  terminal_at         timestamptz,
  updated_at          timestamptz not null default now(),
  created_at          timestamptz not null default now(),
  progress_at         timestamptz,
  cancel_requested_at timestamptz,
  attempt_count       integer     not null default 0,
  error_code          text,
  error_message       text,
  asset_id            text,
  trace_id            text,
  idempotency_key     text        collate "C",
  provider            text        not null,
  model               text        not null,
  input               jsonb       not null default '{}',
  constraint generation_tasks_status check (status in (
    'created', 'submitting', 'submitted', 'queued', 'running', 'provider_status_unknown', 'cancel_requested',
    'provider_succeeded', 'processing_media', 'ready', 'failed', 'canceled'
  )),
  constraint generation_tasks_stage check (
    case when status = 'processing_media'
      then stage in ('backhauling', 'verifying', 'transcoding', 'publishing')
      else stage = status
    end
  ),
  constraint generation_tasks_terminal check (
    (status in ('ready', 'failed', 'canceled')) = (terminal_at is not null)
  ),
  constraint generation_tasks_ready check ((status = 'ready') = (asset_id is not null)),
  constraint generation_tasks_asset check (asset_id ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}$'),
  constraint generation_tasks_progress check (progress between 0 and 100)
) with (fillfactor = 50);
create unique index generation_tasks_idempotency on aivedio.generation_tasks (project_id, idempotency_key)
  where idempotency_key is not null;
create index generation_tasks_project on aivedio.generation_tasks (project_id, id desc);
comment on table aivedio.generation_tasks is
  'The current state of what a user asked for. version counts its events; stage equals status except while media is processed; an asset exists exactly when it is ready. The asset pattern admits no URL.';

create table aivedio.task_attempts (
  id                  uuid        primary key,
  task_id             uuid        not null references aivedio.generation_tasks (id),
  attempt_no          integer     not null,
  provider            text        not null,
  model               text        not null,
  client_request_id   text        not null collate "C",
  provider_task_id    text        collate "C",
  status              text        not null,
  last_provider_seq   bigint,
  last_provider_at    timestamptz,
  next_poll_at        timestamptz,
  poll_failures       integer     not null default 0,
  poll_lease_until    timestamptz,
  leased_by           text,
  created_at          timestamptz not null default now(),
  updated_at          timestamptz not null default now(),
  tenant_id           uuid        not null,
  project_id          uuid        not null,
  known_status        text        not null,
  stage               text,
  progress            smallint,
  progress_at         timestamptz,
  provider_revision   bigint,
  callback_token_hash bytea,
  credential          text        not null default 'default',
  deadline_at         timestamptz,
  lease_token         bigint      not null default 0,
  poll_count          integer     not null default 0,
  unchanged_polls     integer     not null default 0,
  throttled_polls     integer     not null default 0,
  malformed_polls     integer     not null default 0,
  last_polled_at      timestamptz,
  last_callback_at    timestamptz,
  hinted_at           timestamptz,
  submit_state        text        not null default 'due',
  submit_token        bigint      not null default 0,
  submit_lease_until  timestamptz,
  submit_leased_by    text,
  submit_tries        integer     not null default 0,
  submit_due_at       timestamptz,
  submitted_at        timestamptz,
  cancel_state        text,
  cancel_due_at       timestamptz,
  cancel_token        bigint      not null default 0,
  cancel_tries        integer     not null default 0,
  cancel_lease_until  timestamptz,
  cancel_leased_by    text,
  error_class         text,
  error_code          text,
  error_detail        text,
  terminal_at         timestamptz,
  terminal_seen_by    text[]      not null default '{}',
  start_key           text,
  start_reason        text,
  started_by          text,
  trace_id            text,
  constraint uq_task_attempt_no unique (task_id, attempt_no),
  constraint uq_client_request unique (provider, client_request_id),
  constraint task_attempts_start_key unique (task_id, start_key),
  constraint task_attempts_status check (status in (
    'created', 'submitting', 'submit_unknown', 'submitted', 'queued', 'running', 'unknown', 'succeeded', 'failed', 'canceled'
  )),
  constraint task_attempts_known_status check (known_status in (
    'created', 'submitting', 'submit_unknown', 'submitted', 'queued', 'running', 'succeeded', 'failed', 'canceled'
  )),
  constraint task_attempts_terminal check (
    (status in ('succeeded', 'failed', 'canceled')) = (terminal_at is not null)
  ),
  constraint task_attempts_submit_state check (submit_state in (
    'due', 'sent', 'accepted', 'rejected', 'unknown', 'withdrawn'
  )),
  constraint task_attempts_cancel_state check (cancel_state in ('due', 'sent', 'accepted', 'unsupported', 'given_up'))
) with (fillfactor = 50);
create unique index uq_provider_task on aivedio.task_attempts (provider, provider_task_id)
  where provider_task_id is not null;
create unique index task_attempts_token on aivedio.task_attempts (callback_token_hash)
  where callback_token_hash is not null;
create index task_attempts_poll_due on aivedio.task_attempts (tenant_id, next_poll_at) where next_poll_at is not null;
create index task_attempts_submit_due on aivedio.task_attempts (created_at) where submit_state = 'due';
create index task_attempts_submit_sent on aivedio.task_attempts (submit_lease_until) where submit_state = 'sent';
create index task_attempts_cancel_due on aivedio.task_attempts (cancel_due_at) where cancel_state in ('due', 'sent');
comment on table aivedio.task_attempts is
  'One submission of a task to one provider. known_status is the last status the provider itself reported, kept while status is unknown. Tokens are fencing tokens: a late worker''s answer is refused. error_detail is the provider''s own text: private, never in an event.';

create table aivedio.attempt_outputs (
  attempt_id uuid        not null references aivedio.task_attempts (id),
  ordinal    smallint    not null,
  kind       text        not null default 'video',
  url        text,
  expires_at timestamptz,
  created_at timestamptz not null,
  purged_at  timestamptz,
  primary key (attempt_id, ordinal)
);
comment on table aivedio.attempt_outputs is
  'The provider''s output URLs: private, never in an event, url emptied after publication. expires_at is when the provider deletes the file.';

create table aivedio.task_transitions (
  task_status text not null,
  observed    text not null,
  verdict     text not null,
  new_status  text,
  primary key (task_status, observed),
  constraint task_transitions_observed check (observed in ('queued', 'running', 'succeeded', 'failed', 'canceled')),
  constraint task_transitions_verdict check (verdict in (
    'applied', 'progress', 'duplicate', 'stale_status', 'terminal'
  )),
  constraint task_transitions_target check ((verdict in ('applied', 'progress')) = (new_status is not null))
);
comment on table aivedio.task_transitions is
  'The state machine: what an observation of the current attempt does to a task. applied moves to new_status; progress stays and may record progress; terminal leaves the answer to the attempt''s own end. new_status "resume" is where the attempt was last known to be, never lower than observed.';

insert into aivedio.task_transitions (task_status, observed, verdict, new_status) values
  ('created',                 'queued',    'applied',      'queued'),
  ('created',                 'running',   'applied',      'running'),
  ('created',                 'succeeded', 'applied',      'provider_succeeded'),
  ('created',                 'failed',    'applied',      'failed'),
  ('created',                 'canceled',  'applied',      'canceled'),
  ('submitting',              'queued',    'applied',      'queued'),
  ('submitting',              'running',   'applied',      'running'),
  ('submitting',              'succeeded', 'applied',      'provider_succeeded'),
  ('submitting',              'failed',    'applied',      'failed'),
  ('submitting',              'canceled',  'applied',      'canceled'),
  ('submitted',               'queued',    'applied',      'queued'),
  ('submitted',               'running',   'applied',      'running'),
  ('submitted',               'succeeded', 'applied',      'provider_succeeded'),
  ('submitted',               'failed',    'applied',      'failed'),
  ('submitted',               'canceled',  'applied',      'canceled'),
  ('queued',                  'queued',    'duplicate',    null),
  ('queued',                  'running',   'applied',      'running'),
  ('queued',                  'succeeded', 'applied',      'provider_succeeded'),
  ('queued',                  'failed',    'applied',      'failed'),
  ('queued',                  'canceled',  'applied',      'canceled'),
  ('running',                 'queued',    'stale_status', null),
  ('running',                 'running',   'progress',     'running'),
  ('running',                 'succeeded', 'applied',      'provider_succeeded'),
  ('running',                 'failed',    'applied',      'failed'),
  ('running',                 'canceled',  'applied',      'canceled'),
  ('provider_status_unknown', 'queued',    'applied',      'resume'),
  ('provider_status_unknown', 'running',   'applied',      'resume'),
  ('provider_status_unknown', 'succeeded', 'applied',      'provider_succeeded'),
  ('provider_status_unknown', 'failed',    'applied',      'failed'),
  ('provider_status_unknown', 'canceled',  'applied',      'canceled'),
  ('cancel_requested',        'queued',    'duplicate',    null),
  ('cancel_requested',        'running',   'progress',     'cancel_requested'),
  ('cancel_requested',        'succeeded', 'applied',      'provider_succeeded'),
  ('cancel_requested',        'failed',    'applied',      'failed'),
  ('cancel_requested',        'canceled',  'applied',      'canceled'),
  ('provider_succeeded',      'queued',    'terminal',     null),
  ('provider_succeeded',      'running',   'terminal',     null),
  ('provider_succeeded',      'succeeded', 'terminal',     null),
  ('provider_succeeded',      'failed',    'terminal',     null),
  ('provider_succeeded',      'canceled',  'terminal',     null),
  ('processing_media',        'queued',    'terminal',     null),
  ('processing_media',        'running',   'terminal',     null),
  ('processing_media',        'succeeded', 'terminal',     null),
  ('processing_media',        'failed',    'terminal',     null),
  ('processing_media',        'canceled',  'terminal',     null),
  ('ready',                   'queued',    'terminal',     null),
  ('ready',                   'running',   'terminal',     null),
  ('ready',                   'succeeded', 'terminal',     null),
  ('ready',                   'failed',    'terminal',     null),
  ('ready',                   'canceled',  'terminal',     null),
  ('failed',                  'queued',    'terminal',     null),
  ('failed',                  'running',   'terminal',     null),
  ('failed',                  'succeeded', 'terminal',     null),
  ('failed',                  'failed',    'terminal',     null),
  ('failed',                  'canceled',  'terminal',     null),
  ('canceled',                'queued',    'terminal',     null),
  ('canceled',                'running',   'terminal',     null),
  ('canceled',                'succeeded', 'terminal',     null),
  ('canceled',                'failed',    'terminal',     null),
  ('canceled',                'canceled',  'terminal',     null);

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
