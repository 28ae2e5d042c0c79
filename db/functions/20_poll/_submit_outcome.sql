/*
 * Stage 20 · poll · _submit_outcome
 *
 * What an answer to a submission means. The line that matters is whether the provider may have accepted it:
 *
 *   accepted   it says so, and names the job
 *   rejected   it says no, or why it cannot
 *   again      it surely has not: never sent, refused for its rate, or for our credential
 *   unknown    anything else: no answer, a server error, an answer without the job's id
 *
 * Called by   settle_submit
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._submit_outcome(
  p_profile jsonb,
  p_outcome jsonb,
  out outcome text,
  out provider_task_id text,
  out error_class text,
  out error_code text,
  out error_detail text
)
language plpgsql
stable
set search_path = ''
as $_submit_outcome$
declare
  v_rule   constant jsonb := p_profile -> 'submit';
  v_kind   constant text := p_outcome ->> 'kind';
  v_status constant integer := (p_outcome ->> 'http_status')::integer;
  v_body   constant jsonb := p_outcome -> 'body';
begin
  if v_kind = 'not_sent' then
    outcome := 'again';
    error_class := 'unreachable';
    error_code := 'provider_unreachable';
  elsif v_kind = 'response' and v_rule -> 'accepted' @> pg_catalog.to_jsonb(v_status) then
    provider_task_id := aivedio._read_id(v_body, v_rule ->> 'provider_task_id');
    outcome := case when provider_task_id is null then 'unknown' else 'accepted' end;
  elsif v_kind in ('response', 'malformed') and v_status between 400 and 499 then
    case aivedio._http_meaning(p_profile, 'submit', v_status)
      when 'throttled' then
        outcome := 'again';
        error_class := 'throttled';
        error_code := 'provider_busy';
      when 'auth' then
        outcome := 'again';
        error_class := 'credential_refused';
        error_code := 'provider_unreachable';
      when 'retry' then
        outcome := 'unknown';
      else
        outcome := 'rejected';
        error_detail := pg_catalog.left(
          coalesce(aivedio._read_text(v_body, v_rule ->> 'error_message'), v_body ->> 'detail', v_body::text), 1000
        );
        select mapped.error_class, mapped.error_code
        into error_class, error_code
        from aivedio._map_error(p_profile, error_detail, 'rejected', 'provider_rejected') as mapped;
    end case;
  else
    outcome := 'unknown';
  end if;
end;
$_submit_outcome$;

comment on function aivedio._submit_outcome is
  'Stage 20: what an answer to a submission means: accepted, rejected, again or unknown.';
