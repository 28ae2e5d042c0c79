/*
 * Stage 20 · poll · _read_poll
 *
 * What the answer to a poll amounts to. "body" comes with an observation; the rest is about the request:
 * throttled, not_found, auth, refused, retry (a fault that should pass) or malformed (an answer that cannot be
 * understood: no JSON object, no status in it, too many outputs or, where the profile requires one, none, too large).
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
  v_answer aivedio.poll_answer;
begin
  v_answer.http_status := v_status;
  if p_outcome ->> 'retry_after_s' is not null then
    v_answer.retry_after_s := greatest(0, least(3600, (p_outcome ->> 'retry_after_s')::double precision));
  end if;
  v_answer.meaning := case
    when v_kind in ('timeout', 'network', 'not_sent') then 'retry'
    when v_kind not in ('response', 'malformed', 'too_large') or v_status is null then 'malformed'
    else aivedio._http_meaning(p_profile, 'poll', v_status)
  end;
  v_answer.detail := pg_catalog.left(
    coalesce(
      p_outcome ->> 'error', p_outcome ->> 'sample', case when v_answer.meaning <> 'body' then v_body::text end, v_kind
    ),
    500
  );

  if v_answer.meaning in ('failed', 'canceled') and v_kind <> 'too_large' then
    -- The status line alone says how the job ended; the body may add why.
    v_answer.observation := aivedio._normalise(
      p_attempt.provider, p_profile, 'poll',
      case pg_catalog.jsonb_typeof(v_body) when 'object' then v_body else '{}' end,
      pg_catalog.jsonb_build_object('status', v_status)
    );
    v_answer.meaning := 'body';
  elsif v_answer.meaning = 'body' then
    if v_kind <> 'response' or pg_catalog.jsonb_typeof(v_body) is distinct from 'object' then
      v_answer.meaning := 'malformed';
    else
      v_answer.observation := aivedio._normalise(
        p_attempt.provider, p_profile, 'poll', v_body, pg_catalog.jsonb_build_object('status', v_status)
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
