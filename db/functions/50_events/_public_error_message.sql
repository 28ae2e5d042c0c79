/*
 * Stage 50 · events · _public_error_message
 *
 * The sentence that goes with a public error code. Codes are stable and may be branched on;
 * sentences may be reworded.
 *
 * Called by   _apply_locked, _fail_attempt, _reject_submit, _fail_media
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._public_error_message(p_code text)
returns text
language sql
immutable
set search_path = ''
as $_public_error_message$
  select case p_code
    when 'provider_rejected' then 'The provider did not accept this request. Check the input and try again.'
    when 'content_refused' then 'The provider''s content rules refuse this input.'
    when 'provider_failed' then 'The provider could not generate this video.'
    when 'provider_busy' then 'The provider is over its limit. Try again later.'
    when 'provider_unreachable' then 'The provider could not be reached. Nothing was generated.'
    when 'submit_unknown' then 'It is not known yet whether the provider accepted this request.'
    when 'timed_out' then 'The provider did not finish in time.'
    when 'canceled_by_provider' then 'The provider canceled this job.'
    when 'media_failed' then 'The video was generated but could not be prepared for playback.'
    else 'Something went wrong. Support can find it by its trace id.'
  end;
$_public_error_message$;

comment on function aivedio._public_error_message is
  'Stage 50: the sentence shown with a public error code.';
