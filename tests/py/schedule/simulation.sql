-- Jobs that live and end, and one tick of polling them; every poll is written down.
create schema simulated;
create table simulated.job (
  attempt_id uuid primary key, ends_at timestamptz not null, due_at timestamptz not null
);
create unlogged table simulated.poll (
  at timestamptz, attempt_id uuid, tenant_id uuid, provider text, model text, wait interval, first boolean,
  late interval
);
create sequence simulated.number;

create function simulated.life() returns interval language sql volatile as $$
  select greatest(interval '5 seconds', interval '120 seconds' * -ln(1 - random()));
$$;

-- One more job in flight: one tenant has seven of ten, the others share the rest.
create function simulated.add(p_at timestamptz, p_due timestamptz) returns void language plpgsql as $$
declare
  v_number bigint := nextval('simulated.number');
  v_tenant text := case when v_number % 10 < 7 then 'large' when v_number % 10 < 9 then 'middle'
    else 'small ' || v_number / 10 % 7 end;
  v_provider text := case when v_number % 4 = 0 then 'beta' else 'alpha' end;
  v_name text := 'job ' || v_number;
begin
  perform fixture.task(v_name, 'running', p_provider => v_provider, p_tenant => v_tenant,
    p_project => v_tenant || v_number % 20, p_model => 'm' || v_number % 3);
  perform fixture.attempt(v_name, v_name, 'running', p_provider_task_id => v_name, p_next_poll_at => p_due);
  insert into simulated.job values (fixture.id(v_name), p_at + simulated.life(), p_due);
end;
$$;

create function simulated.tick(p_now timestamptz) returns void language plpgsql as $$
declare
  v_request aivedio.provider_request;
  v_attempt aivedio.task_attempts;
  v_job simulated.job;
  v_body jsonb;
begin
  perform set_config('aivedio.now', p_now::text, false);
  for v_request in select request.* from aivedio.claim_polls('simulation', 1000) as request loop
    select * into v_attempt from aivedio.task_attempts where id = v_request.attempt_id;
    select * into v_job from simulated.job where attempt_id = v_request.attempt_id;
    insert into simulated.poll values (
      p_now, v_attempt.id, v_attempt.tenant_id, v_attempt.provider, v_attempt.model,
      p_now - v_job.due_at, v_attempt.poll_first, case when p_now >= v_job.ends_at then p_now - v_job.ends_at end
    );
    v_body := jsonb_build_object('id', v_attempt.provider_task_id) || case
      when p_now >= v_job.ends_at then '{"status": "succeeded", "output": "https://x.example/o.mp4"}'::jsonb
      else jsonb_build_object('status', 'processing') end;
    perform aivedio.settle_poll(v_request.attempt_id, v_request.lease_token, jsonb_build_object(
      'kind', 'response', 'http_status', 200, 'body', v_body));
    if p_now >= v_job.ends_at then
      delete from simulated.job where attempt_id = v_request.attempt_id;
      perform simulated.add(p_now, p_now + interval '2 seconds' + random() * interval '3 seconds');
    else
      update simulated.job as job set due_at = attempt.next_poll_at
      from aivedio.task_attempts as attempt
      where job.attempt_id = v_request.attempt_id and attempt.id = job.attempt_id;
    end if;
  end loop;
end;
$$;
