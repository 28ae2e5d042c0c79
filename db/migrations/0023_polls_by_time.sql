-- migrate:up
-- 0023  The next poll of all, and the few that are due, are found without a look at every tenant.
set local role aivedio_owner;

create index task_attempts_poll_next on aivedio.task_attempts (next_poll_at) where next_poll_at is not null;

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
