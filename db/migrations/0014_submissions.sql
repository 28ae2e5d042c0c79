-- migrate:up
-- 0014  Who submits a task, aivedio or the application; and due submissions found per credential, so that those behind
--       an open circuit cost the others nothing.
set local role aivedio_owner;

alter table aivedio.generation_tasks
  add column submitted_by text not null default 'aivedio',
  add constraint generation_tasks_submitted_by check (submitted_by in ('aivedio', 'application'));
comment on column aivedio.generation_tasks.submitted_by is
  'Who sends attempts of this task to the provider: aivedio, through the submit edge, or the application, which then calls record_submission.';

alter table aivedio.task_attempts
  drop constraint task_attempts_submit_state,
  add constraint task_attempts_submit_state check (submit_state in (
    'due', 'application', 'sent', 'accepted', 'rejected', 'unknown', 'withdrawn'
  ));
comment on column aivedio.task_attempts.submit_state is
  'due: to be handed out; application: the application submits it, nobody else may; sent: handed out, no answer yet; accepted: the provider has it; rejected: it has not, or was given up; unknown: nobody knows, a case is open; withdrawn: never sent, no longer wanted.';

drop index aivedio.task_attempts_submit_due;
create index task_attempts_submit_due on aivedio.task_attempts (
  provider, credential, coalesce(submit_due_at, created_at)
) where submit_state = 'due';

drop index aivedio.task_attempts_overdue;
create index task_attempts_overdue on aivedio.task_attempts (deadline_at)
  where terminal_at is null and submit_state in ('accepted', 'unknown', 'application');

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
