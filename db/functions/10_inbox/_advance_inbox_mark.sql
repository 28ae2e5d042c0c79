/*
 * Stage 10 · inbox · _advance_inbox_mark
 *
 * Moves the inbox's low-water mark as far as is safe and answers with it: a scan that starts there does not
 * wade through processed rows, however long some snapshot keeps them.
 *
 * Called by   _claim_callbacks
 * Writes      aivedio.queue_marks
 * Locks       the mark's row, if nobody else holds it
 */
create or replace function aivedio._advance_inbox_mark()
returns bigint
language plpgsql
volatile
set search_path = ''
as $_advance_inbox_mark$
declare
  v_high       bigint;
  v_snapshot   pg_snapshot;
  v_low        bigint;
  v_unfinished bigint;
begin
  -- The order of these three matters: see _advance_mark. A sequence that has drawn nothing yet shows the value
  -- that it will draw first.
  select case when ids.is_called then ids.last_value else ids.last_value - 1 end
  into v_high
  from aivedio.provider_callback_inbox_id_seq as ids;
  v_snapshot := pg_catalog.pg_current_snapshot();

  select mark.low
  into v_low
  from aivedio.queue_marks as mark
  where mark.queue = 'inbox'
    and mark.shard = 0;

  select waiting.id
  into v_unfinished
  from aivedio.provider_callback_inbox as waiting
  where waiting.process_status in ('pending', 'retry')
    and waiting.id > coalesce(v_low, 0)
  order by waiting.id
  limit 1;

  return aivedio._advance_mark('inbox', 0::smallint, v_high, v_snapshot, v_unfinished);
end;
$_advance_inbox_mark$;

comment on function aivedio._advance_inbox_mark is
  'Stage 10: advance the inbox''s low-water mark and answer it.';
