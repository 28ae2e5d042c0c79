/*
 * Stage 10 · inbox · knows_callback_token
 *
 * Whether some attempt of a provider was given this callback token. A provider that registers an address asks us to
 * echo a word before its first callback: that is answered without a row, but not to strangers.
 *
 * Called by   edge/intake/receive.py, as aivedio_webhook
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.knows_callback_token(
  p_provider   text,
  p_token_hash bytea
)
returns boolean
language sql
stable
security definer  -- aivedio_webhook may ask about one token without reading the attempts
set search_path = ''
as $knows_callback_token$
  select exists (
    select 1
    from aivedio.task_attempts as attempt
    where attempt.callback_token_hash = p_token_hash
      and attempt.provider = p_provider
  );
$knows_callback_token$;

comment on function aivedio.knows_callback_token is
  'Stage 10: whether a callback token belongs to an attempt of this provider.';

grant execute on function aivedio.knows_callback_token to aivedio_webhook;
