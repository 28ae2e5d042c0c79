/*
 * Stage 30 · observation · _map_callback
 *
 * Finds the attempt that a callback speaks of: by the token of its URL, then by our client_request_id, then by
 * the provider's task id. The first that names an attempt decides; if another names a different one,
 * agrees is false and nothing may be applied. An id that we have never seen contradicts nothing: some
 * providers report another id than they answered at submission.
 *
 * Called by   process_inbox
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._map_callback(
  p_provider          text,
  p_token_hash        bytea,
  p_client_request_id text,
  p_provider_task_id  text,
  out attempt_id uuid,
  out project_id uuid,
  out agrees     boolean
)
language plpgsql
stable
set search_path = ''
as $_map_callback$
begin
  select
    (pg_catalog.array_agg(found.id order by found.rank))[1],
    (pg_catalog.array_agg(found.project_id order by found.rank))[1],
    pg_catalog.count(distinct found.id) <= 1
  into attempt_id, project_id, agrees
  from (
    select attempt.id, attempt.project_id, 1 as rank
    from aivedio.task_attempts as attempt
    where attempt.callback_token_hash = p_token_hash
      and attempt.provider = p_provider
    union all
    select attempt.id, attempt.project_id, 2
    from aivedio.task_attempts as attempt
    where attempt.provider = p_provider
      and attempt.client_request_id = p_client_request_id
    union all
    select attempt.id, attempt.project_id, 3
    from aivedio.task_attempts as attempt
    where attempt.provider = p_provider
      and attempt.provider_task_id = p_provider_task_id
  ) as found;
end;
$_map_callback$;

comment on function aivedio._map_callback is
  'Stage 30: the attempt and project that a callback belongs to, and whether its clues agree.';
