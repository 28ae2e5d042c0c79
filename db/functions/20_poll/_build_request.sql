/*
 * Stage 20 · poll · _build_request
 *
 * Makes the one HTTP request that a profile describes for an attempt: submit, poll or cancel; while the first answer
 * of a poll waits for its second request, a poll is that one. The URL is always the profile's base URL and path,
 * whatever URLs a provider returns; values enter it encoded, as a part of the path or query. The secret is a
 * reference that the edge resolves.
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
  v_rule   constant jsonb := case
    when p_request = 'poll' and p_attempt.poll_answer is not null
      then coalesce(p_profile #> '{poll,then}', p_profile -> 'poll')
    else p_profile -> p_request
  end;
  v_values constant jsonb := aivedio._request_values(p_attempt, p_profile, p_input, p_callback_url);
  v_result aivedio.provider_request;
begin
  v_result.attempt_id := p_attempt.id;
  v_result.lease_token := p_token;
  v_result.provider := p_attempt.provider;
  v_result.credential := p_attempt.credential;
  v_result.method := v_rule ->> 'method';
  v_result.url := (p_profile ->> 'base_url') || aivedio._fill_text(v_rule ->> 'path', v_values, true) || coalesce(
    (
      select '?' || pg_catalog.string_agg(
        aivedio._url_part(parameter.key) || '=' || aivedio._url_part(parameter.value), '&' order by parameter.key
      )
      from pg_catalog.jsonb_each_text(aivedio._fill_body(v_rule -> 'query', v_values)) as parameter
    ),
    ''
  );
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

  -- A credential of its own brings both halves of a pair, as id:secret.
  select (p_profile -> 'auth') || coalesce(
    (
      select pg_catalog.jsonb_build_object('secret', credential.secret_ref, 'id', null)
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
