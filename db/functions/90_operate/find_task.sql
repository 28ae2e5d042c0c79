/*
 * Stage 90 · operate · find_task
 *
 * Finds tasks by whatever somebody has in hand: the id of a task, an attempt or a case; our client_request_id or the
 * provider's task id; the number of a callback, an event or an outbox row. A number may name several tasks.
 *
 * Called by   edge/console; operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.find_task(p_text text)
returns setof aivedio.found_task
language plpgsql
stable
security definer  -- operators look without reading the tables
set search_path = ''
set plan_cache_mode = force_custom_plan  -- a generic plan locks every partition
as $find_task$
declare
  v_words  constant text := pg_catalog.left(pg_catalog.btrim(p_text), 300);
  v_id     constant uuid := case
    when v_words ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then v_words::uuid
  end;
  v_number constant bigint := case when v_words ~ '^[0-9]{1,16}$' then v_words::bigint end;
begin
  return query
  with named (task_id, found_as, place) as (
    select v_id, 'task', 1
    where v_id is not null
    union all
    select attempt.task_id, 'attempt', 2
    from aivedio.task_attempts as attempt
    where attempt.id = v_id
    union all
    select known.task_id, 'case', 3
    from aivedio.reconciliation_cases as known
    where known.id = v_id
    union all
    select attempt.task_id, 'client_request', 4
    from aivedio.providers as provider
    join aivedio.task_attempts as attempt
      on attempt.provider = provider.name
      and attempt.client_request_id = v_words
    union all
    select attempt.task_id, 'provider_task', 5
    from aivedio.providers as provider
    join aivedio.task_attempts as attempt
      on attempt.provider = provider.name
      and attempt.provider_task_id = v_words
    union all
    select attempt.task_id, 'callback', 6
    from aivedio.mapped_callbacks as mapped
    join aivedio.task_attempts as attempt on attempt.id = mapped.attempt_id
    where mapped.id = v_number
    union all
    select event.task_id, 'event', 7
    from aivedio.task_events as event
    where event.event_id = v_number
    union all
    select sent.aggregate_id, 'outbox', 8
    from aivedio.outbox_events as sent
    where sent.id = v_number
  ),
  found as (
    select distinct on (named.task_id) named.task_id, named.found_as, named.place
    from named
    order by named.task_id, named.place
  )
  select task.id, found.found_as, task.status, task.provider, task.model, task.created_at
  from found
  join aivedio.generation_tasks as task on task.id = found.task_id
  order by found.place, task.created_at desc
  limit 50;
end;
$find_task$;

comment on function aivedio.find_task is
  'Stage 90: tasks by the id of a task, attempt or case, by client_request_id or provider task id, or by the number of a callback, an event or an outbox row.';

grant execute on function aivedio.find_task to aivedio_operator;
