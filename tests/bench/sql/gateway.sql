-- Changes of many tasks at once, as the state machine writes them, for benchmarks of the gateway.
create function public.emit(p_tasks uuid[])
returns setof aivedio.task_events
language plpgsql
as $emit$
declare
  v_task aivedio.generation_tasks;
  v_id   uuid;
begin
  foreach v_id in array p_tasks loop
    select * into v_task from aivedio.generation_tasks as task where task.id = v_id;
    v_task.status := case when v_task.status = 'queued' then 'running' else 'queued' end;
    v_task.stage := v_task.status;
    v_task := aivedio._emit(v_task, v_task.current_attempt_id, 'command', pg_catalog.clock_timestamp());
    return query select * from aivedio.task_events as event where event.event_id = v_task.last_event_id;
  end loop;
end;
$emit$;

create function public.seed(p_projects integer)
returns table (project uuid, task uuid)
language plpgsql
as $seed$
begin
  for v_number in 1 .. p_projects loop
    project := pg_catalog.md5('project ' || v_number)::uuid;
    task := (aivedio.create_task('00000000-0000-0000-0000-000000000001', project,
                                 '00000000-0000-0000-0000-000000000002', 'replicate', 'm', '{}')).task_id;
    return next;
  end loop;
end;
$seed$;
