-- migrate:up
-- 0012  What upkeep and the status look for, found without reading all that was ever there.
set local role aivedio_owner;

create index provider_callback_inbox_dead on aivedio.provider_callback_inbox (id) where process_status = 'dead';
create index attempt_outputs_purge on aivedio.attempt_outputs (expires_at) where url is not null;

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
