/*
 * Stage 70 · consumers · _lock_operations
 *
 * Locks all media operations of an attempt, in the order of their ids. They are queue rows, so they come before the
 * project's stream; and who has one of them may have to open or close the others.
 *
 * Called by   open_media, report_media, _give_up_media
 * Writes      nothing
 * Locks       the operations
 */
create or replace function aivedio._lock_operations(p_attempt uuid)
returns void
language plpgsql
volatile
set search_path = ''
as $_lock_operations$
begin
  perform 1
  from aivedio.media_operations as operation
  where operation.attempt_id = p_attempt
  order by operation.id
  for no key update;
end;
$_lock_operations$;

comment on function aivedio._lock_operations is
  'Stage 70: lock the media operations of an attempt, in order.';
