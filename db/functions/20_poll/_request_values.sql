/*
 * Stage 20 · poll · _request_values
 *
 * What the {placeholders} of a request stand for: the model as the provider calls it, the ids, the callback URL, the
 * input, the first answer of a poll of two requests, and what the profile derives from these by pattern (values:
 * {"app": {"from": "model", "match": "^[^/]+/[^/]+"}}). A value that is missing is absent.
 *
 * Called by   _build_request
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._request_values(
  p_attempt      aivedio.task_attempts,
  p_profile      jsonb,
  p_input        jsonb,
  p_callback_url text
)
returns jsonb
language plpgsql
stable
set search_path = ''
as $_request_values$
declare
  v_given constant jsonb := pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
    'model', coalesce(p_profile #>> array['models', p_attempt.model], p_attempt.model),
    'client_request_id', p_attempt.client_request_id,
    'provider_task_id', p_attempt.provider_task_id,
    'callback_url', p_callback_url
  )) || pg_catalog.jsonb_build_object('input', p_input, 'answer', p_attempt.poll_answer);
begin
  return v_given || coalesce(
    (
      select pg_catalog.jsonb_object_agg(derived.key, derived.value)
      from (
        select
          rule.key,
          coalesce(
            pg_catalog.substring(
              pg_catalog.left(v_given #>> pg_catalog.string_to_array(rule.value ->> 'from', '.'), 1000),
              rule.value ->> 'match'
            ),
            rule.value ->> 'default'
          ) as value
        from pg_catalog.jsonb_each(p_profile -> 'values') as rule
      ) as derived
      where derived.value is not null
    ),
    '{}'
  );
end;
$_request_values$;

comment on function aivedio._request_values is
  'Stage 20: the values of the placeholders in a profile''s requests.';
