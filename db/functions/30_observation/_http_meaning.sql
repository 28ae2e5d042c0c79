/*
 * Stage 30 · observation · _http_meaning
 *
 * What an HTTP status of a provider's answer means, by the profile's own rules for this request first
 * (poll.http, poll.then.http, cancel.http: {"422": "failed", "4xx": "retry"}), then by what is usual:
 *
 *   body       read the body            failed, canceled   the job ended so, whatever the body looks like
 *   not_found  no such job              auth               the credential is refused
 *   throttled  too many requests        retry              a fault that should pass
 *   refused    the request itself is wrong
 *
 * Called by   _answer_meaning, _normalise, _read_submit, settle_cancel
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._http_meaning(
  p_profile jsonb,
  p_request text,
  p_status  integer
)
returns text
language plpgsql
immutable
set search_path = ''
as $_http_meaning$
declare
  v_rules constant jsonb := p_profile #> (pg_catalog.string_to_array(p_request, '.') || 'http'::text);
begin
  return coalesce(
    v_rules ->> p_status::text,
    v_rules ->> ((p_status / 100)::text || 'xx'),
    case
      when p_status between 200 and 299 then 'body'
      when p_status in (401, 403) then 'auth'
      when p_status in (404, 410) then 'not_found'
      when p_status = 429 then 'throttled'
      when p_status in (408, 425) or p_status >= 500 then 'retry'
      else 'refused'
    end
  );
end;
$_http_meaning$;

comment on function aivedio._http_meaning is
  'Stage 30: the meaning of an HTTP status for one kind of request: body, failed, canceled, not_found, auth, throttled, retry or refused.';
