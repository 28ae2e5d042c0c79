/*
 * Stage 30 · observation · _request_problems
 *
 * What is wrong with the requests that a profile describes: submit, and where there are any, poll, its second
 * request, and cancel.
 *
 * Called by   _profile_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._request_problems(p_profile jsonb)
returns text[]
language plpgsql
stable
set search_path = ''
as $_request_problems$
declare
  v_problems text[] := '{}'::text[];
  v_name     text;
  v_rule     jsonb;
begin
  foreach v_name in array array['submit', 'poll', 'poll.then', 'cancel'] loop
    v_rule := p_profile #> pg_catalog.string_to_array(v_name, '.');
    if coalesce(pg_catalog.jsonb_typeof(v_rule), 'null') = 'null' then
      if v_name = 'submit' then
        v_problems := v_problems || 'submit: missing'::text;
      elsif v_name = 'poll' and coalesce(pg_catalog.jsonb_typeof(p_profile -> 'webhook'), 'null') = 'null' then
        v_problems := v_problems || 'poll: needed where there is no webhook'::text;
      end if;
    elsif pg_catalog.jsonb_typeof(v_rule) <> 'object' then
      v_problems := v_problems || pg_catalog.format('%s: an object', v_name);
    else
      v_problems := v_problems || aivedio._one_request_problems(v_name, v_rule, p_profile);
    end if;
  end loop;

  if pg_catalog.jsonb_typeof(p_profile -> 'submit') = 'object' then
    v_problems := v_problems
      || aivedio._path_problems('submit.provider_task_id', p_profile #> '{submit,provider_task_id}', true);
    if not coalesce(p_profile @? '$.submit.accepted[0] ? (@ >= 200 && @ <= 299)', false) then
      v_problems := v_problems || 'submit.accepted: the HTTP statuses of success, 2xx'::text;
    end if;
  end if;

  if pg_catalog.jsonb_typeof(p_profile #> '{poll,then}') = 'object' then
    v_problems := v_problems || aivedio._predicate_problems('poll.then.when', p_profile #> '{poll,then,when}');
    if coalesce(p_profile #>> '{poll,then,into}', '') !~ '^\w{1,40}$' then
      v_problems := v_problems || 'poll.then.into: the name of the member that holds the second answer'::text;
    end if;
  end if;
  if coalesce(p_profile #> '{poll,gone_after_cancel}', 'false') not in ('true', 'false') then
    v_problems := v_problems || 'poll.gone_after_cancel: true or false'::text;
  end if;

  if pg_catalog.jsonb_typeof(p_profile -> 'cancel') = 'object' then
    if not coalesce(p_profile @? '$.cancel.confirmed[0] ? (@ >= 200 && @ <= 499)', false) then
      v_problems := v_problems || 'cancel.confirmed: the HTTP statuses that confirm'::text;
    end if;
    if coalesce(pg_catalog.jsonb_typeof(p_profile #> '{cancel,only_when}'), 'null') <> 'null' then
      if not coalesce(p_profile #> '{cancel,only_when}' <@ '["queued", "running"]', false)
        or p_profile #> '{cancel,only_when}' = '[]'
      then
        v_problems := v_problems || 'cancel.only_when: a list of queued, running or both'::text;
      elsif pg_catalog.jsonb_typeof(p_profile -> 'poll') is distinct from 'object' then
        v_problems := v_problems || 'cancel.only_when: needs a poll, which alone tells how a job stands'::text;
      end if;
    end if;
  end if;

  return v_problems;
end;
$_request_problems$;

comment on function aivedio._request_problems is
  'Stage 30: what is wrong with a profile''s submit, poll and cancel requests.';
