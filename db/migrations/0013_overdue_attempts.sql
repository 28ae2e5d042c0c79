-- migrate:up
-- 0013  Overdue attempts are found by their deadline, also those that no poll looks at.
set local role aivedio_owner;

create index task_attempts_overdue on aivedio.task_attempts (deadline_at)
  where terminal_at is null and submit_state in ('accepted', 'unknown');

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
