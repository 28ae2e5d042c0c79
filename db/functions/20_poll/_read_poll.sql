/*
 * Stage 20 · poll · _read_poll
 *
 * What the answer to a poll amounts to. "body" comes with an observation, "then" asks for the second request of the
 * profile (poll.then); the rest is about the request: throttled, not_found, auth, refused, retry (a fault that should
 * pass) or malformed (an answer that cannot be understood: no JSON object, no status in it, too many outputs or, where
 * the profile requires one, none, too large).
 *
 * The answer to a second request is read as the first one with a member more, poll.then.into. A job that the provider
 * no longer knows after our own cancel is canceled, where the profile says that cancelled jobs vanish.
 *
 * Called by   settle_poll
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._read_poll(
  p_attempt aivedio.task_attempts,
  p_profile jsonb,
  p_outcome jsonb
)
returns aivedio.poll_answer
language plpgsql
stable
set search_path = ''
as $_read_poll$
declare
  v_kind   constant text := coalesce(p_outcome ->> 'kind', 'malformed');
  v_status constant integer := (p_outcome ->> 'http_status')::integer;
  v_body   constant jsonb := p_outcome -> 'body';
  v_first  constant jsonb := p_attempt.poll_answer;
  v_then   constant jsonb := nullif(p_profile #> '{poll,then}', 'null');
  v_second constant boolean := v_first is not null and v_then is not null;
  v_grace  constant interval := pg_catalog.make_interval(
    secs => coalesce((p_profile #>> '{poll,not_found_grace_s}')::double precision, 60)
  );
  v_object jsonb := case pg_catalog.jsonb_typeof(v_body) when 'object' then v_body else '{}' end;
  v_answer aivedio.poll_answer;
begin
  if v_second then
    v_object := v_first || pg_catalog.jsonb_build_object(v_then ->> 'into', v_body);
  end if;

  v_answer.http_status := v_status;
  if p_outcome ->> 'retry_after_s' is not null then
    v_answer.retry_after_s := greatest(0, least(3600, (p_outcome ->> 'retry_after_s')::double precision));
  end if;
  v_answer.meaning := case
    -- Ours to mend: neither the job nor the provider has failed.
    when v_kind = 'not_sent' and p_outcome ->> 'error' in ('NoSecret', 'BadSecret') then 'auth'
    when v_kind in ('timeout', 'network', 'not_sent') then 'retry'
    when v_kind not in ('response', 'malformed', 'too_large') or v_status is null then 'malformed'
    else aivedio._answer_meaning(p_profile, case when v_second then 'poll.then' else 'poll' end, v_status, v_body)
  end;
  if v_answer.meaning = 'not_found'
    and p_profile #>> '{poll,gone_after_cancel}' = 'true'
    and (
      p_attempt.cancel_state = 'accepted'
      or (p_attempt.cancel_tries > 0 and coalesce(p_attempt.submitted_at + v_grace < aivedio._clock(), true))
    )
  then
    v_answer.meaning := 'canceled';
  end if;
  v_answer.detail := pg_catalog.left(
    coalesce(
      p_outcome ->> 'error',
      p_outcome ->> 'sample',
      case when v_answer.meaning <> 'body' then aivedio._redact(v_body, p_profile -> 'redact')::text end,
      v_kind
    ),
    500
  );

  if v_answer.meaning in ('failed', 'canceled') and v_kind <> 'too_large' then
    -- The status line alone says how the job ended; the body may add why.
    v_answer.observation := aivedio._normalise(
      p_attempt.provider, p_profile, 'poll', v_object,
      pg_catalog.jsonb_build_object('status', v_status, 'means', v_answer.meaning)
    );
    v_answer.meaning := 'body';
  elsif v_answer.meaning = 'body' then
    if v_kind <> 'response'
      or (not v_second and pg_catalog.jsonb_typeof(v_body) is distinct from 'object')
      or coalesce(pg_catalog.jsonb_typeof(v_body), 'null') = 'null'
    then
      v_answer.meaning := 'malformed';
    elsif not v_second
      and coalesce(pg_catalog.jsonb_path_match(v_body, (v_then ->> 'when')::jsonpath, '{}', true), false)
    then
      -- The first answer is kept with the attempt until the second comes.
      v_answer.meaning := case when pg_catalog.length(v_body::text) <= 65536 then 'then' else 'malformed' end;
    else
      v_answer.observation := aivedio._normalise(
        p_attempt.provider, p_profile, 'poll', v_object,
        pg_catalog.jsonb_build_object('status', v_status, 'means', 'body')
      );
      if (v_answer.observation).provider_word is null then
        v_answer.meaning := 'malformed';
        v_answer.detail := 'no status in the body';
      elsif aivedio._is_thin(p_profile - 'webhook', v_answer.observation) then
        v_answer.meaning := 'malformed';
        v_answer.detail := 'a success without an output';
      end if;
    end if;
  end if;

  v_answer.observation.attempt_id := p_attempt.id;
  v_answer.observation.trace_id := p_attempt.trace_id;
  v_answer.observation.payload_hash := pg_catalog.sha256(pg_catalog.convert_to(v_body::text, 'UTF8'));
  return v_answer;
exception
  when sqlstate 'VC304' then
    v_answer.meaning := 'malformed';
    v_answer.detail := 'too many outputs';
    v_answer.observation := null;
    return v_answer;
end;
$_read_poll$;

comment on function aivedio._read_poll is
  'Stage 20: the meaning of a poll''s outcome, with the observation when there is one.';
