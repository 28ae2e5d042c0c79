/*
 * Stage 30 · observation · _answer_problems
 *
 * What is wrong with how a profile says that callbacks are answered: a status that is no success, a body where the
 * status has none, a challenge that names no member.
 *
 * Called by   _access_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._answer_problems(p_webhook jsonb)
returns text[]
language plpgsql
immutable
set search_path = ''
as $_answer_problems$
declare
  v_answer   constant jsonb := p_webhook -> 'acknowledge';
  v_status   constant jsonb := coalesce(v_answer -> 'status', '204');
  v_problems text[] := '{}'::text[];
begin
  if coalesce(pg_catalog.jsonb_typeof(v_answer), 'null') not in ('object', 'null') then
    v_problems := v_problems || 'webhook.acknowledge: {"status": 204, "body": null}, or what the provider wants'::text;
  elsif v_status not in ('200', '201', '202', '204') then
    v_problems := v_problems || 'webhook.acknowledge.status: 200, 201, 202 or 204'::text;
  elsif v_status = '204' and coalesce(pg_catalog.jsonb_typeof(v_answer -> 'body'), 'null') <> 'null' then
    v_problems := v_problems || 'webhook.acknowledge.body: an answer 204 has none'::text;
  end if;

  if coalesce(pg_catalog.jsonb_typeof(p_webhook -> 'challenge'), 'null') <> 'null'
    and coalesce(p_webhook ->> 'challenge', '') !~ '^[A-Za-z_][A-Za-z0-9_]{0,63}$'
  then
    v_problems := v_problems || 'webhook.challenge: the name of the member that is echoed'::text;
  end if;
  return v_problems;
end;
$_answer_problems$;

comment on function aivedio._answer_problems is
  'Stage 30: what is wrong with how a profile says that callbacks are answered.';
