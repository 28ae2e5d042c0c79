-- migrate:up
-- 0008  Who may follow which project, one-time tokens, revocations.
set local role aivedio_owner;

create table aivedio.project_members (
  project_id uuid        not null,
  user_id    uuid        not null,
  tenant_id  uuid        not null,
  role       text        not null default 'member',
  added_at   timestamptz not null default now(),
  primary key (project_id, user_id),
  constraint project_members_role check (role in ('viewer', 'member', 'operator'))
);
comment on table aivedio.project_members is
  'Membership for tokens that name no projects. viewer reads, member also creates and cancels.';

create table aivedio.one_time_tokens (
  token_hash bytea       primary key,
  purpose    text        not null,
  tenant_id  uuid        not null,
  project_id uuid,
  user_id    uuid        not null,
  session_id text        not null,
  claims     jsonb       not null default '{}',
  expires_at timestamptz not null,
  used_at    timestamptz,
  constraint one_time_tokens_purpose check (purpose in ('stream', 'login'))
);
create index one_time_tokens_expiry on aivedio.one_time_tokens (expires_at);
comment on table aivedio.one_time_tokens is
  'Tokens that may travel in a URL: stored as SHA-256 hashes, short-lived, redeemed once. stream opens one event stream, login sets the session cookie.';

create table aivedio.access_revocations (
  kind       text        not null,
  subject    text        not null,
  revoked_at timestamptz not null,
  until      timestamptz not null,
  primary key (kind, subject),
  constraint access_revocations_kind check (kind in ('session', 'user', 'project', 'tenant'))
);
comment on table aivedio.access_revocations is
  'Sessions, users, projects and tenants whose access ended: credentials issued before revoked_at are refused, and open streams close. A row may be purged after until.';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
