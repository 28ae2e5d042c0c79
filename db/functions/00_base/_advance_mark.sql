/*
 * Stage 00 · base · _advance_mark
 *
 * Moves a queue's low-water mark as far as is safe, and answers with it. Ids are drawn before commit,
 * so "the last id sent" is no safe start for a scan: a smaller id may still become visible. Safe is
 * what the sequence had handed out before some moment, once every transaction that was open at that
 * moment is over, and never past the first row that is still unfinished.
 *
 * "Open at that moment" needs a transaction id that is newer than each of theirs. A snapshot's xmax is
 * not: it is one past the newest that is over, and older than some that are open. So the caller's own
 * id serves, if it was drawn after the moment; a caller that owned one before leaves the noting to others.
 *
 * The caller reads, before it writes anything, in this order: p_high, the sequence's last value (0 when
 * it has drawn nothing yet); p_snapshot; p_unfinished, the first unfinished id above the current mark,
 * or null. A row that commits after p_unfinished was read then has a writer that p_snapshot still calls
 * open, so it is not passed. Writers own a transaction id before they draw from the sequence.
 *
 * Called by   _advance_inbox_mark, bus_read, read_outbox
 * Writes      aivedio.queue_marks, at most five times a second
 * Locks       the mark's row; a busy one is left alone
 */
create or replace function aivedio._advance_mark(
  p_queue      text,
  p_shard      smallint,
  p_high       bigint,
  p_snapshot   pg_snapshot,
  p_unfinished bigint
)
returns bigint
language plpgsql
volatile
set search_path = ''
as $_advance_mark$
declare
  v_fresh constant boolean := pg_catalog.pg_current_xact_id_if_assigned() is null;
  v_mark  aivedio.queue_marks;
  v_low   bigint;
begin
  select mark.*
  into v_mark
  from aivedio.queue_marks as mark
  where mark.queue = p_queue
    and mark.shard = p_shard;

  if not found then
    insert into aivedio.queue_marks (queue, shard) values (p_queue, p_shard) on conflict do nothing;
    return 0;
  end if;

  v_low := v_mark.low;
  if v_mark.noted_at > pg_catalog.clock_timestamp() - interval '200 milliseconds' then
    return v_low;
  end if;

  select mark.*
  into v_mark
  from aivedio.queue_marks as mark
  where mark.queue = p_queue
    and mark.shard = p_shard
  for no key update skip locked;

  if not found then
    return v_low;
  end if;

  if v_mark.high is not null and pg_catalog.pg_snapshot_xmin(p_snapshot) > v_mark.high_xid then
    v_mark.low := greatest(v_mark.low, least(v_mark.high, p_unfinished - 1));
    v_mark.high := null;
  end if;

  if v_mark.high is null and v_fresh then
    v_mark.high := p_high;
    v_mark.high_xid := pg_catalog.pg_current_xact_id();
  end if;

  update aivedio.queue_marks as mark
  set low      = v_mark.low,
      high     = v_mark.high,
      high_xid = v_mark.high_xid,
      noted_at = pg_catalog.clock_timestamp()
  where mark.queue = p_queue
    and mark.shard = p_shard;

  return v_mark.low;
end;
$_advance_mark$;

comment on function aivedio._advance_mark is
  'Stage 00: advance a queue''s safe low-water mark and answer it: no unfinished row, committed or not, has an id at or below.';
