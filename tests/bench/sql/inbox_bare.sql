-- The writes of process_inbox for a batch, without reading a payload, judging or isolating anything: rows are taken in
-- the order of their ids, each brings the writes of public.bare, and all are marked at the end.
create function public.bare_inbox(p_shards integer[], p_limit integer)
returns integer
language plpgsql
as $bare_inbox$
declare
  v_row  record;
  v_rows bigint[] := '{}';
begin
  for v_row in
    select inbox.id, substr(inbox.provider_task_id, 4)::integer as n
    from aivedio.provider_callback_inbox as inbox
    join aivedio.task_attempts as attempt
      on attempt.provider = inbox.provider
      and attempt.provider_task_id = inbox.provider_task_id
    where inbox.process_status in ('pending', 'retry')
      and aivedio._shard(attempt.project_id) = any (p_shards)
    order by inbox.id
    limit p_limit
    for no key update of inbox skip locked
  loop
    perform public.bare(v_row.n);
    v_rows := v_rows || v_row.id;
  end loop;
  update aivedio.provider_callback_inbox as inbox
  set process_status = 'done', verdict = 'applied', processed_at = now(),
      attempt_id = (
        select attempt.id from aivedio.task_attempts as attempt
        where attempt.provider = inbox.provider and attempt.provider_task_id = inbox.provider_task_id
      )
  where inbox.id = any (v_rows);
  return cardinality(v_rows);
end;
$bare_inbox$;
