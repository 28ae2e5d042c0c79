/*
 * Stage 30 · observation · _answer_meaning
 *
 * What a provider's answer to a request means, where the status line does not tell all: an error in the body of a 200,
 * a "no such job" without a 404. The first of the request's own rules (answers: [{when, means}]) whose predicate
 * holds for the body wins; without one the status decides, see _http_meaning.
 *
 * Called by   _read_poll, _read_submit, settle_cancel
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._answer_meaning(
  p_profile jsonb,
  p_request text,
  p_status  integer,
  p_body    jsonb
)
returns text
language plpgsql
immutable
set search_path = ''
as $_answer_meaning$
declare
  v_rules   constant jsonb := p_profile #> (pg_catalog.string_to_array(p_request, '.') || 'answers'::text);
  v_meaning text;
begin
  if v_rules is not null and pg_catalog.jsonb_typeof(p_body) = 'object' then
    select rule.value ->> 'means'
    into v_meaning
    from pg_catalog.jsonb_array_elements(v_rules) with ordinality as rule (value, place)
    where coalesce(pg_catalog.jsonb_path_match(p_body, (rule.value ->> 'when')::jsonpath, '{}', true), false)
    order by rule.place
    limit 1;
  end if;

  return coalesce(v_meaning, aivedio._http_meaning(p_profile, p_request, p_status));
end;
$_answer_meaning$;

comment on function aivedio._answer_meaning is
  'Stage 30: the meaning of an answer for one kind of request, by its body where the profile has a rule for it, else by its HTTP status.';
