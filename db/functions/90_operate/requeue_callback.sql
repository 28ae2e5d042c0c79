/*
 * Stage 90 · operate · requeue_callback
 *
 * Lets the inbox worker try a dead or waiting callback again, now, from the first try on.
 *
 * Called by   operators
 * Writes      aivedio.provider_callback_inbox, aivedio.queue_marks, aivedio.operator_actions
 * Locks       the callback's row
 */
create or replace function aivedio.requeue_callback(
  p_inbox bigint,
  p_who   text,
  p_why   text
)
returns boolean
language plpgsql
volatile
security definer  -- operators requeue without writing the inbox
set search_path = ''
as $requeue_callback$
begin
  update aivedio.provider_callback_inbox as inbox
  set process_status  = 'pending',
      retry_count     = 0,
      next_retry_at   = null,
      last_error_code = null,
      processed_at    = null
  where inbox.id = p_inbox
    and inbox.process_status in ('dead', 'retry')
    and inbox.payload is not null;

  if not found then
    return false;
  end if;

  -- A scan starts at the mark, and this row may lie below it.
  update aivedio.queue_marks as mark
  set low  = least(mark.low, p_inbox - 1),
      high = null
  where mark.queue = 'inbox';

  perform aivedio._audit(p_who, 'requeue_callback', p_inbox::text, p_why);
  perform aivedio._ring('aivedio_inbox');
  return true;
end;
$requeue_callback$;

comment on function aivedio.requeue_callback is
  'Stage 90: process a dead or waiting callback again, audited; false when it is not there or its payload is gone.';

grant execute on function aivedio.requeue_callback to aivedio_operator;
