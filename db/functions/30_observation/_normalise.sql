/*
 * Stage 30 · observation · _normalise
 *
 * The only interpreter of what a provider says, for callbacks, polls and reconciliation alike. It reads the
 * payload by the profile's paths, translates the provider's word by the list of its source, and turns a
 * success that hides a failure into that failure. A word without a translation leaves normalized_status
 * null. Nothing of a provider's text reaches a public field: error_code is one of our own codes.
 *
 * p_http: {"status": 200, "means": "failed", "headers": {…}}, as far as they are known; "means" is what the caller
 * already made of the status line.
 *
 * Called by   _process_callback, _read_poll, normalise
 * Writes      nothing
 * Locks       nothing
 * Raises      VC303  the payload is not a JSON object
 *             VC304  there are more outputs than the profile allows
 */
create or replace function aivedio._normalise(
  p_provider text,
  p_profile  jsonb,
  p_source   text,
  p_payload  jsonb,
  p_http     jsonb
)
returns aivedio.provider_observation
language plpgsql
stable
set search_path = ''
as $_normalise$
declare
  v_now     constant timestamptz := aivedio._clock();
  v_fields  constant jsonb := aivedio._fields(p_profile, p_source);
  v_profile constant jsonb := case
    when v_fields = p_profile -> 'fields' then p_profile
    else p_profile || pg_catalog.jsonb_build_object('fields', v_fields)
  end;
  v_words   constant jsonb := coalesce(p_profile #> array['words', p_source], p_profile #> '{words,poll}');
  v_meaning text := 'body';
  v_rule    jsonb;
  v_error   text;
  v_result  aivedio.provider_observation;
begin
  if pg_catalog.jsonb_typeof(p_payload) is distinct from 'object' then
    raise exception 'payload must be a JSON object'
      using errcode = 'VC303',
            detail  = pg_catalog.format(
              'provider %s sent %s', p_provider, coalesce(pg_catalog.jsonb_typeof(p_payload), 'nothing')
            );
  end if;

  v_result.provider := p_provider;
  v_result.source := p_source;
  v_result.received_at := v_now;
  v_result.provider_task_id := aivedio._read_id(p_payload, v_fields ->> 'provider_task_id');
  v_result.client_request_id := aivedio._read_id(p_payload, v_fields ->> 'client_request_id');
  v_result.provider_word := aivedio._read_word(p_payload, v_fields -> 'status');
  v_result.normalized_status := v_words ->> v_result.provider_word;

  if p_source <> 'webhook' and p_http ? 'status' then
    v_meaning := coalesce(
      p_http ->> 'means', aivedio._http_meaning(p_profile, 'poll', (p_http ->> 'status')::integer)
    );
    if v_meaning in ('failed', 'canceled') then
      v_result.normalized_status := v_meaning;
    end if;
  end if;

  v_result.provider_sequence := aivedio._read_count(p_payload, v_fields ->> 'sequence');
  v_result.provider_revision := aivedio._read_count(p_payload, v_fields ->> 'revision');

  -- The first path that holds a time wins: profiles list the latest moment of a job first.
  select aivedio._read_time(found.value, v_now)
  into v_result.provider_occurred_at
  from pg_catalog.jsonb_array_elements_text(nullif(v_fields -> 'occurred_at', 'null'))
      with ordinality as path (value, place),
    pg_catalog.jsonb_path_query_first(p_payload, path.value::jsonpath, '{}', true) as found (value)
  where pg_catalog.jsonb_typeof(found.value) <> 'null'
  order by path.place
  limit 1;

  if v_result.normalized_status = 'succeeded' then
    v_result.output_refs := aivedio._read_outputs(p_payload, v_profile);

    for v_rule in
      select rule.value
      from pg_catalog.jsonb_array_elements(p_profile -> 'hidden_failures') with ordinality as rule (value, place)
      where coalesce(pg_catalog.jsonb_path_match(p_payload, (rule.value ->> 'when')::jsonpath, '{}', true), false)
      order by rule.place
      limit 1
    loop
      v_result.normalized_status := coalesce(v_rule ->> 'status', 'failed');
      v_result.output_refs := null;
    end loop;
  end if;

  if v_result.normalized_status in ('failed', 'canceled') then
    v_result.error_detail := pg_catalog.left(aivedio._read_first(p_payload, v_fields -> 'error_message'), 1000);
    v_error := pg_catalog.concat_ws(
      ' ', aivedio._read_first(p_payload, v_fields -> 'error_code'), v_result.error_detail
    );
  end if;

  if v_result.normalized_status = 'failed' then
    select mapped.p_error_class, mapped.p_error_code
    into v_result.error_class, v_result.error_code
    from aivedio._map_error(
      p_profile, v_error,
      coalesce(v_rule ->> 'class', 'provider_failed'), coalesce(v_rule ->> 'code', 'provider_failed')
    ) as mapped;
  elsif v_result.normalized_status = 'canceled' then
    v_result.error_class := 'canceled';
    v_result.error_code := 'canceled_by_provider';
  elsif v_result.normalized_status in ('queued', 'running') then
    v_result.progress := aivedio._read_progress(p_payload, v_profile);
  end if;

  return v_result;
end;
$_normalise$;

comment on function aivedio._normalise is
  'Stage 30: what one payload of a provider says, as an observation, by the given profile.';
