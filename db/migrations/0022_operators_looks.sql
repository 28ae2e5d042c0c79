-- migrate:up
-- 0022  What operators look at, as rows: a task's whole history, what waits for a decision, providers, what was done
--       by hand.
set local role aivedio_owner;

create type aivedio.found_task as (
  task_id    uuid,
  found_as   text,
  status     text,
  provider   text,
  model      text,
  created_at timestamptz
);
comment on type aivedio.found_task is
  'A task that somebody looked for; found_as tells what the words named: task, attempt, client_request, provider_task, callback, event, case or outbox.';

create type aivedio.history_entry as (
  at         timestamptz,
  kind       text,
  attempt_no integer,
  what       text,
  detail     jsonb
);
comment on type aivedio.history_entry is
  'One thing that happened to a task. kind is where it is recorded: task, attempt, submission, callback, observation, polls, cancel, event, outbox, media, credit, case or action; what is the word that it is recorded with. detail holds our words and ids only: no secret, payload or URL.';

create type aivedio.listed_case as (
  id          uuid,
  kind        text,
  subject     text,
  provider    text,
  task_id     uuid,
  attempt_id  uuid,
  opened_at   timestamptz,
  last_at     timestamptz,
  evidence    jsonb,
  resolutions text[]
);
comment on type aivedio.listed_case is
  'An open reconciliation case, and what it may be resolved as: kept, failed, or adopted, which adopt_attempt does.';

create type aivedio.dead_callback as (
  id                bigint,
  provider          text,
  received_at       timestamptz,
  processed_at      timestamptz,
  error             text,
  tries             integer,
  signed            boolean,
  provider_task_id  text,
  client_request_id text,
  attempt_id        uuid,
  task_id           uuid,
  replayable        boolean
);
comment on type aivedio.dead_callback is
  'A callback that ended dead, with the attempt that it names now. replayable: its payload is still there.';

create type aivedio.listed_alarm as (
  kind     text,
  subject  text,
  count    bigint,
  first_at timestamptz,
  last_at  timestamptz,
  detail   jsonb
);
comment on type aivedio.listed_alarm is
  'An open alarm. The sample of an answer that could not be read is left out of detail: aivedio.alarms has it.';

create type aivedio.parked_message as (
  id         bigint,
  task_id    uuid,
  version    bigint,
  status     text,
  tries      integer,
  error      text,
  created_at timestamptz
);
comment on type aivedio.parked_message is
  'An outbox row that could not be sent: version and status are those of the task''s change that it tells.';

create type aivedio.provider_summary as (
  name         text,
  revision     bigint,
  webhook      boolean,
  poll         boolean,
  overridden   boolean,
  scheduled    bigint,
  due          bigint,
  coverage     double precision,
  ends         integer,
  delay_p50_s  double precision,
  delay_p95_s  double precision,
  measured_at  timestamptz,
  circuits     jsonb,
  quotas       jsonb,
  last_end_at  timestamptz
);
comment on type aivedio.provider_summary is
  'How a provider is now. webhook, poll: whether its profile has them; scheduled, due: its polls; coverage and delay: see callback_coverage; circuits: those that are not closed; quotas: its bucket and those of its models, with rate, full_rate, tokens, refusals, blocked_until; last_end_at: when an attempt last ended.';

create type aivedio.listed_action as (
  id      bigint,
  at      timestamptz,
  actor   text,
  action  text,
  subject text,
  reason  text
);
comment on type aivedio.listed_action is 'What somebody did by hand.';

create index reconciliation_cases_opened on aivedio.reconciliation_cases (opened_at desc, id) where state = 'open';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
