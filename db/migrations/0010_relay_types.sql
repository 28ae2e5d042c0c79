-- migrate:up
-- 0010  What the relay reads: outbox rows of several shards at once.
set local role aivedio_owner;

create type aivedio.owed_message as (
  shard       smallint,
  id          bigint,
  task_id     uuid,
  tag         text,
  body        jsonb,
  retry_count integer
);
comment on type aivedio.owed_message is 'One outbox row for the bus, with the shard whose owner sends it.';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
