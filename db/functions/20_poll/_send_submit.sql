/*
 * Stage 20 · poll · _send_submit
 *
 * Marks an attempt as on its way to the provider and builds its request. The token in the callback URL holds
 * 244 random bits; whoever reads the database learns only its hash.
 *
 * Called by   claim_submits, holding stream → task → attempt
 * Writes      aivedio.task_attempts; what _emit writes
 * Locks       nothing
 */
create or replace function aivedio._send_submit(
  p_attempt       aivedio.task_attempts,
  p_worker        text,
  p_callback_base text
)
returns aivedio.provider_request
language plpgsql
volatile
set search_path = ''
as $_send_submit$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_profile constant jsonb := aivedio._profile(p_attempt.provider);
  v_token   constant text := pg_catalog.rtrim(
    pg_catalog.translate(
      pg_catalog.encode(
        pg_catalog.sha256(
          pg_catalog.uuid_send(pg_catalog.gen_random_uuid()) || pg_catalog.uuid_send(pg_catalog.gen_random_uuid())
        ),
        'base64'
      ),
      '+/', '-_'
    ),
    '='
  );
  v_lease   constant interval := pg_catalog.make_interval(secs => aivedio._setting('submit_lease_s')::double precision);
  v_calls   constant boolean := pg_catalog.jsonb_typeof(v_profile -> 'webhook') = 'object';
  v_task    aivedio.generation_tasks;
  v_attempt aivedio.task_attempts;
begin
  update aivedio.task_attempts as attempt
  set status              = 'submitting',
      known_status        = 'submitting',
      submit_state        = 'sent',
      submit_token        = attempt.submit_token + 1,
      submit_tries        = attempt.submit_tries + 1,
      submit_lease_until  = v_now + v_lease,
      submit_leased_by    = p_worker,
      callback_token_hash = case when v_calls then pg_catalog.sha256(pg_catalog.convert_to(v_token, 'UTF8')) end,
      updated_at          = v_now
  where attempt.id = p_attempt.id
  returning attempt.* into v_attempt;

  select task.*
  into strict v_task
  from aivedio.generation_tasks as task
  where task.id = p_attempt.task_id;

  if v_task.status = 'created' then
    v_task.status := 'submitting';
    v_task := aivedio._emit(v_task, v_attempt.id, 'submit', v_now);
  end if;

  return aivedio._build_request(
    'submit', v_attempt, v_profile, v_attempt.submit_token, v_task.input,
    case when v_calls then
      pg_catalog.rtrim(p_callback_base, '/') || '/callbacks/' || v_attempt.provider || '/' || v_token
    end
  );
end;
$_send_submit$;

comment on function aivedio._send_submit is
  'Stage 20: mark an attempt as being submitted and answer the request to make.';
