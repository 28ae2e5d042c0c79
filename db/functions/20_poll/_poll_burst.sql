/*
 * Stage 20 · poll · _poll_burst
 *
 * How many polls a bucket of this rate may hand out at once: one, and a tenth of a second's worth. With _refilled,
 * which leaves that tenth out, no window of a second or more ever sees more polls than its rate allows.
 *
 * Called by   _poll_tokens, _set_quotas, _spend_quotas
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._poll_burst(p_rate double precision)
returns double precision
language sql
immutable
set search_path = ''
as $_poll_burst$
  select 1 + p_rate / 10;
$_poll_burst$;

comment on function aivedio._poll_burst is
  'Stage 20: the most tokens that a poll bucket of this rate may hold.';
