-- migrate:up
-- 0016  Polls of two requests, and when the provider's own word on an attempt was last heard.
set local role aivedio_owner;

alter table aivedio.task_attempts
  add column poll_answer jsonb,
  add column seen_at     timestamptz;
comment on column aivedio.task_attempts.poll_answer is
  'The first answer of a poll whose second request is due. It lives for that one request: whatever comes of it, the next poll begins anew.';
comment on column aivedio.task_attempts.seen_at is
  'When a poll last brought a status of this attempt. A cancel that would destroy a finished job is sent only when that is fresh.';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
