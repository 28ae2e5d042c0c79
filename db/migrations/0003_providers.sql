-- migrate:up
-- 0003  What is known of each provider, as data: profiles, credentials by reference, circuits, quotas.
set local role aivedio_owner;

create table aivedio.providers (
  name       text        primary key,
  profile    jsonb       not null,
  override   jsonb       not null default '{}',
  effective  jsonb       not null,
  revision   bigint      not null default 1,
  updated_at timestamptz not null,
  constraint providers_name check (name ~ '^[a-z][a-z0-9_]{0,62}$')
);
comment on table aivedio.providers is
  'One row per provider. profile is what db/providers ships, override what this installation changes, effective their merge: the one that is read.';

create table aivedio.provider_credentials (
  provider   text        not null references aivedio.providers (name),
  name       text        not null default 'default',
  secret_ref text        not null,
  enabled    boolean     not null default true,
  updated_at timestamptz not null,
  primary key (provider, name),
  constraint provider_credentials_reference check (secret_ref ~ '^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$')
);
comment on table aivedio.provider_credentials is
  'API keys by reference (env:NAME or file:/path). The value never enters the database.';

create table aivedio.provider_circuits (
  provider   text        not null,
  credential text        not null,
  state      text        not null default 'closed',
  failures   integer     not null default 0,
  openings   integer     not null default 0,
  reason     text,
  opened_at  timestamptz,
  retry_at   timestamptz,
  probe_until timestamptz,
  primary key (provider, credential),
  constraint provider_circuits_state check (state in ('closed', 'open', 'half_open'))
) with (fillfactor = 50);
comment on table aivedio.provider_circuits is
  'Whether a credential may be used for polls. open: not before retry_at; half_open: one probe until probe_until. failures counts faults in a row, openings since the last success.';

create table aivedio.poll_quotas (
  level         text             not null,
  key           text             not null,
  tokens        double precision not null,
  rate          double precision not null,
  burst         double precision not null,
  full_rate     double precision not null,
  refilled_at   timestamptz      not null,
  blocked_until timestamptz,
  refusals      integer          not null default 0,
  primary key (level, key),
  constraint poll_quotas_level check (level in ('platform', 'tenant', 'provider', 'model')),
  constraint poll_quotas_rate check (rate > 0 and burst >= 1 and full_rate >= rate)
) with (fillfactor = 30);
comment on table aivedio.poll_quotas is
  'Token buckets of polls at four levels; rate in polls per second. refusals counts answers 429 in a row: the bucket waits until blocked_until, its rate halves and grows back to full_rate.';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
