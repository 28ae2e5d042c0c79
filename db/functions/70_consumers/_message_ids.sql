/*
 * Stage 70 · consumers · _message_ids
 *
 * Whom a message from the bus is about. A message that does not say is nobody's: it ends as a dead letter.
 *
 * Called by   book_credit, open_media
 * Writes      nothing
 * Locks       nothing
 * Raises      VC701  the message names no task or attempt, or names them in no way that there is
 */
create or replace function aivedio._message_ids(
  p_message      jsonb,
  out p_task     uuid,
  out p_attempt  uuid,
  out p_event_id bigint
)
language plpgsql
immutable
set search_path = ''
as $_message_ids$
begin
  if pg_catalog.jsonb_typeof(p_message) = 'object'
    and p_message ->> 'attempt_id' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    and coalesce(p_message ->> 'aggregate_id', p_message ->> 'attempt_id')
      ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    and coalesce(p_message ->> 'event_id', '0') ~ '^\d{1,18}$'
  then
    p_task := (p_message ->> 'aggregate_id')::uuid;
    p_attempt := (p_message ->> 'attempt_id')::uuid;
    p_event_id := (p_message ->> 'event_id')::bigint;
    return;
  end if;

  raise exception 'message names no task or attempt'
    using errcode = 'VC701',
          detail  = coalesce(pg_catalog.left(p_message::text, 200), 'nothing');
end;
$_message_ids$;

comment on function aivedio._message_ids is
  'Stage 70: the task, attempt and event that a message is about; VC701 when it does not say.';
