/*
 * Stage 20 · poll · _build_request
 *
 * Makes the one HTTP request that a profile describes for an attempt: submit, poll or cancel. The URL is always the
 * profile's base URL and path; values enter it encoded, as a part of the path or query. The secret is
 * a reference that the edge resolves.
 *
 * Called by   _send_submit, claim_cancels, claim_polls
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._build_request(
  p_request      text,
  p_attempt      aivedio.task_attempts,
  p_profile      jsonb,
  p_token        bigint,
  p_input        jsonb,
  p_callback_url text
)
returns aivedio.provider_request
language plpgsql
stable
set search_path = ''
as $_build_request$
declare
  v_rule   constant jsonb := p_profile -> p_request;
  v_values constant jsonb := pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
    'model', coalesce(p_profile #>> array['models', p_attempt.model], p_attempt.model),
    'client_request_id', p_attempt.client_request_id,
    'provider_task_id', p_attempt.provider_task_id,
    'callback_url', p_callback_url
  )) || pg_catalog.jsonb_build_object('input', p_input);
  v_result aivedio.provider_request;
begin
  v_result.attempt_id := p_attempt.id;
  v_result.lease_token := p_token;
  v_result.provider := p_attempt.provider;
  v_result.credential := p_attempt.credential;
  v_result.method := v_rule ->> 'method';
  v_result.url := (p_profile ->> 'base_url') || aivedio._fill_text(v_rule ->> 'path', v_values, true);
  v_result.body := aivedio._fill_body(v_rule -> 'body', v_values);
  v_result.timeout_s := coalesce((v_rule ->> 'timeout_s')::real, 15);
  v_result.max_bytes := coalesce((v_rule ->> 'max_bytes')::integer, 1048576);
  v_result.local := coalesce((p_profile ->> 'local')::boolean, false);
  v_result.trace_id := p_attempt.trace_id;

  select coalesce(
    pg_catalog.jsonb_object_agg(
      pg_catalog.lower(header.key),
      pg_catalog.regexp_replace(aivedio._fill_text(header.value, v_values, false), '[\x01-\x1f\x7f]', '', 'g')
    ),
    '{}'
  )
  into v_result.headers
  from pg_catalog.jsonb_each_text(v_rule -> 'headers') as header;

  select (p_profile -> 'auth') || coalesce(
    (
      select pg_catalog.jsonb_build_object('secret', credential.secret_ref)
      from aivedio.provider_credentials as credential
      where credential.provider = p_attempt.provider
        and credential.name = p_attempt.credential
        and credential.enabled
    ),
    '{}'
  )
  into v_result.auth;

  return v_result;
end;
$_build_request$;

comment on function aivedio._build_request is
  'Stage 20: the HTTP request that an attempt''s provider wants for a submit, a poll or a cancel.';
