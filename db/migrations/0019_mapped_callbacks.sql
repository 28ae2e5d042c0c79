-- migrate:up
-- 0019  To which attempt a waiting callback belongs, as one rule for the inbox worker and for who looks by hand.
set local role aivedio_owner;

create view aivedio.mapped_callbacks as
select
  inbox.id,
  inbox.process_status,
  inbox.next_retry_at,
  coalesce(by_token.id, by_request.id, by_task.id) as attempt_id,
  coalesce(by_token.project_id, by_request.project_id, by_task.project_id) as project_id,
  (by_token.id = by_request.id) is not false
    and (by_token.id = by_task.id) is not false
    and (by_request.id = by_task.id) is not false as agrees
from aivedio.provider_callback_inbox as inbox
left join aivedio.task_attempts as by_token
  on inbox.callback_token_hash = by_token.callback_token_hash
  and inbox.provider = by_token.provider
left join aivedio.task_attempts as by_request
  on inbox.provider = by_request.provider
  and inbox.client_request_id = by_request.client_request_id
left join aivedio.task_attempts as by_task
  on inbox.provider = by_task.provider
  and inbox.provider_task_id = by_task.provider_task_id;
comment on view aivedio.mapped_callbacks is
  'The attempt that each callback names: by the token of its URL, else by our client_request_id, else by the provider''s task id. agrees is false when two of them name different attempts. An id that we have never seen contradicts nothing.';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
