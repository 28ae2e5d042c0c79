-- For the files that show how a provider's bodies are understood: a table of examples, and what the
-- interpreter makes of each as one JSON object without nulls. An expectation is complete: what it does
-- not name is not there.
create temporary table example (
  place    integer generated always as identity,
  source   text    not null,
  http     jsonb   not null default '{"status": 200}',
  body     jsonb   not null,
  expected jsonb   not null,
  why      text    not null
);

create function pg_temp.said(p_provider text, p_source text, p_body jsonb, p_http jsonb)
returns jsonb
language sql
as $said$
  select jsonb_strip_nulls(jsonb_build_object(
    'task', said.provider_task_id,
    'client', said.client_request_id,
    'word', said.provider_word,
    'status', said.normalized_status,
    'progress', said.progress,
    'at', to_char(said.provider_occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'class', said.error_class,
    'code', said.error_code,
    'detail', said.error_detail,
    'urls', (select jsonb_agg(output ->> 'url') from jsonb_array_elements(said.output_refs) as output),
    'kinds', nullif(
      (select jsonb_agg(distinct output ->> 'kind') from jsonb_array_elements(said.output_refs) as output), '["video"]'
    ),
    'lives', said.output_refs -> 0 -> 'expires_in_s'
  ))
  from aivedio.normalise(p_provider, p_source, p_body, p_http) as said;
$said$;

-- Judges all examples of a provider.
create function pg_temp.judge(p_provider text)
returns setof text
language sql
as $judge$
  select is(
    pg_temp.said(p_provider, example.source, example.body, example.http), example.expected,
    format('%s %s: %s', example.source, example.place, example.why)
  )
  from example
  order by example.place;
$judge$;

-- What a body looks like in the inbox: as it is stored, and once it is applied.
create function pg_temp.stored(p_provider text, p_body jsonb)
returns jsonb
language sql
as $stored$
  select aivedio._redact(p_body, provider.effective -> 'redact')
  from aivedio.providers as provider where provider.name = p_provider;
$stored$;

create function pg_temp.kept(p_provider text, p_body jsonb)
returns jsonb
language sql
as $kept$
  select aivedio._redact(
    pg_temp.stored(p_provider, p_body),
    coalesce(provider.effective -> 'redact_after', '[]') || aivedio._output_paths(provider.effective)
  )
  from aivedio.providers as provider where provider.name = p_provider;
$kept$;
