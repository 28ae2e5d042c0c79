-- migrate:up
-- 0018  Looks at tasks and attempts that read what they show, not all that was ever there; callbacks that repeat
--       themselves are counted.
set local role aivedio_owner;

-- A key on status itself would make every change of status touch every index. These columns change once, at the end.
alter table aivedio.generation_tasks
  add column ended_as text generated always as (case when terminal_at is not null then status end) stored;
comment on column aivedio.generation_tasks.ended_as is
  'The status of a task that is over, else null: what ended tasks are looked up by.';
create index generation_tasks_ended on aivedio.generation_tasks (project_id, ended_as, id desc)
  where ended_as is not null;
create index generation_tasks_open on aivedio.generation_tasks (project_id, id desc) where terminal_at is null;

create index task_attempts_created on aivedio.task_attempts (created_at);

alter table aivedio.task_attempts add column repeated_callbacks integer not null default 0;
comment on column aivedio.task_attempts.repeated_callbacks is
  'Callbacks that told nothing new. The same delivery sent twice is none of them: it is recognised before it is read.';
alter type aivedio.convergence add attribute callbacks_repeated bigint;
comment on type aivedio.convergence is
  'How one provider''s model behaved on one day (of the attempts'' creation). callback_first, poll_first: whose observation ended the attempt; callback_lead: median time by which the callback came before the poll that saw the same end; callback_coverage: share of ended attempts whose end a callback told; lag: received minus occurred by the provider''s clock; duration: from submission to the end; out_of_order: observations that came after something later; polls_unchanged and polls_throttled: shares of all polls; callbacks_repeated: callbacks that told nothing new.';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
