-- Stage 30: nonsense anywhere in a profile is refused as such, or does no harm: whatever define_provider accepts, requests are
-- built and answers read without an error.
begin;
\ir support/fixtures.sql
select plan(4);

-- Every place of a profile, at every depth.
create function pg_temp.places(p_profile jsonb)
returns table (path text[], value jsonb)
language sql
as $places$
  with recursive place (path, value) as (
    select '{}'::text[], p_profile
    union all
    select place.path || member.key, member.value
    from place
    cross join lateral (
      select entry.key, entry.value
      from jsonb_each(case jsonb_typeof(place.value) when 'object' then place.value else '{}' end) as entry
      union all
      select (item.place - 1)::text, item.value
      from jsonb_array_elements(case jsonb_typeof(place.value) when 'array' then place.value else '[]' end)
        with ordinality as item (value, place)
    ) as member
  )
  select place.path, place.value from place where place.path <> '{}';
$places$;

-- What a job meets on its way, with bodies of every kind.
create function pg_temp.use(p_provider text, p_profile jsonb)
returns void
language plpgsql
as $use$
declare
  v_attempt aivedio.task_attempts;
  v_body    jsonb;
  v_outcome jsonb;
begin
  select attempt.* into strict v_attempt from aivedio.task_attempts as attempt where attempt.id = fixture.id('attempt');
  v_attempt.provider := p_provider;
  perform aivedio._build_request('submit', v_attempt, p_profile, 1, '{"prompt": "x", "options": {"a": 1}}', 'https://us.example/callbacks/x/tok');
  foreach v_body in array array[
    '{"id": "1", "request_id": "1", "task_id": "1", "status": "Success", "file_id": 9, "data": {"id": "1", "status": "ready"}, "error": null}',
    '{"status": "COMPLETED", "error": "boom", "code": 5, "base_resp": {"status_code": 1}}',
    '{"status": 7, "id": {}, "data": [], "error": [1], "logs": {}, "output": "https://cdn.example/o"}', '{}', '[]', '"x"', '7', 'null'
  ]::jsonb[] loop
    v_outcome := jsonb_build_object('kind', 'response', 'http_status', 200, 'body', v_body);
    perform aivedio._read_submit(p_profile, v_outcome);
    perform aivedio._answer_meaning(p_profile, 'cancel', 200, v_body);
    v_attempt.poll_answer := null;
    perform aivedio._build_request('poll', v_attempt, p_profile, 1, null, null);
    perform aivedio._read_poll(v_attempt, p_profile, v_outcome);
    perform aivedio._read_poll(v_attempt, p_profile, v_outcome || '{"http_status": 404}');
    v_attempt.poll_answer := '{"status": "Success", "file_id": 9}';
    perform aivedio._build_request('poll', v_attempt, p_profile, 1, null, null);
    perform aivedio._read_poll(v_attempt, p_profile, v_outcome);
    perform aivedio._read_callback(
      row(1, p_provider, '{"webhook-id": "m1"}', v_body::text, '\x00', 'current', true, null, null, null)::aivedio.received_callback, p_profile
    );
    if jsonb_typeof(v_body) = 'object' then
      perform aivedio._normalise(p_provider, p_profile, 'webhook', v_body, '{}');
      perform aivedio._redact(v_body, p_profile -> 'redact_after');
    end if;
  end loop;
  if jsonb_typeof(p_profile -> 'cancel') = 'object' then
    perform aivedio._build_request('cancel', v_attempt, p_profile, 1, null, null);
    perform aivedio._cancel_verdict(v_attempt, p_profile);
  end if;
  perform aivedio._output_paths(p_profile), aivedio._poll_delay(p_profile, 'running', 3), aivedio._deadline(p_profile);
end;
$use$;

-- One value at one place: null when it was refused by name, or when it was accepted and used; the error otherwise.
create function pg_temp.harm(p_profile jsonb)
returns text
language plpgsql
as $harm$
declare
  v_where text := 'define_provider';
begin
  perform aivedio.define_provider('nonsense', p_profile);
  v_where := 'use';
  perform pg_temp.use('nonsense', p_profile);
  return null;
exception
  when sqlstate 'VC305' then
    return null;
  when others then
    return format('%s: %s %s', v_where, sqlstate, sqlerrm);
end;
$harm$;

select fixture.task();
select fixture.attempt(p_provider_task_id => 'p/1');

select is_empty(
  format(
    $$
      select place.path, nonsense.value, harm.text
      from aivedio.providers as provider
      cross join lateral pg_temp.places(provider.profile) as place
      cross join (values ('null'::jsonb), ('7'), ('-1.5'), ('"x"'), ('""'), ('[]'), ('[7]'), ('{}'), ('{"x": 7}'), ('true')) as nonsense (value)
      cross join lateral (select pg_temp.harm(jsonb_set(provider.profile, place.path, nonsense.value))) as harm (text)
      where provider.name = %L
        and harm.text is not null
    $$,
    given.provider
  ),
  format('%s, with nonsense in each of its places', given.provider)
)
from (values ('fal'), ('minimax'), ('mux'), ('veo')) as given (provider);

select finish();
rollback;
