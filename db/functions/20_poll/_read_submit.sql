/*
 * Stage 20 · poll · _read_submit
 *
 * What the answer to a submission means. The line that matters is whether the provider may have accepted it:
 *
 * An error may come in the body of a success: the profile's rules for answers (submit.answers) look first.
 *
 *   accepted   it says so, and names the job
 *   rejected   it says no, or why it cannot
 *   again      it surely has not: never sent, for want of its secret too, refused for its rate, or for our credential
 *   unknown    anything else: no answer, a server error, an answer without the job's id
 *
 * Called by   settle_submit
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._read_submit(
  p_profile jsonb,
  p_outcome jsonb
)
returns aivedio.submit_answer
language plpgsql
stable
set search_path = ''
as $_read_submit$
declare
  v_rule   constant jsonb := p_profile -> 'submit';
  v_kind   constant text := p_outcome ->> 'kind';
  v_status constant integer := (p_outcome ->> 'http_status')::integer;
  v_body   constant jsonb := p_outcome -> 'body';
  v_means  text;
  v_answer aivedio.submit_answer;
begin
  v_answer.meaning := 'unknown';

  if v_kind in ('response', 'malformed', 'too_large') and v_status is not null then
    v_means := aivedio._answer_meaning(p_profile, 'submit', v_status, v_body);
  end if;

  if v_kind = 'not_sent' then
    v_answer.meaning := 'again';
    v_answer.error_class := case
      when p_outcome ->> 'error' in ('NoSecret', 'BadSecret') then 'not_configured'
      else 'unreachable'
    end;
    v_answer.error_code := 'provider_unreachable';
    v_answer.error_detail := case v_answer.error_class
      when 'not_configured' then pg_catalog.format(
        'its secret is missing or unusable where submissions are made; the profile names %s', p_profile #>> '{auth,secret}'
      )
      else p_outcome ->> 'error'
    end;
  elsif v_means = 'body' then
    if v_kind = 'response' and (v_rule -> 'accepted') @> pg_catalog.to_jsonb(v_status) then
      v_answer.provider_task_id := aivedio._read_id(v_body, v_rule ->> 'provider_task_id');
    end if;
    if v_answer.provider_task_id is not null then
      v_answer.meaning := 'accepted';
    end if;
  elsif v_status between 400 and 499 or v_means <> aivedio._http_meaning(p_profile, 'submit', v_status) then
    case v_means
      when 'throttled' then
        v_answer.meaning := 'again';
        v_answer.error_class := 'throttled';
        v_answer.error_code := 'provider_busy';
      when 'auth' then
        v_answer.meaning := 'again';
        v_answer.error_class := 'credential_refused';
        v_answer.error_code := 'provider_unreachable';
      when 'retry' then
        v_answer.meaning := 'unknown';
      else
        v_answer.meaning := 'rejected';
        v_answer.error_detail := pg_catalog.left(
          coalesce(aivedio._read_first(v_body, v_rule -> 'error_message'), v_body ->> 'detail', v_body #>> '{}'), 1000
        );
        select mapped.p_error_class, mapped.p_error_code
        into v_answer.error_class, v_answer.error_code
        from aivedio._map_error(
          p_profile,
          pg_catalog.concat_ws(' ', aivedio._read_first(v_body, v_rule -> 'error_code'), v_answer.error_detail),
          'rejected', 'provider_rejected'
        ) as mapped;
    end case;
  end if;

  return v_answer;
end;
$_read_submit$;

comment on function aivedio._read_submit is
  'Stage 20: what the answer to a submission means: accepted, rejected, again or unknown.';
