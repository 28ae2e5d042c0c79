/*
 * Stage 60 · outbox · read_shards
 *
 * read_outbox for several shards in one round trip, one shard after the other, until p_limit rows are
 * found. Callers let another shard be the first each time, so that a backlog in one starves no other.
 *
 * Not a pipeline of single reads: a client that hangs in the middle of one is not idle for the server,
 * which would then keep the session, and the shards with it, for ever.
 *
 * Called by   relay/owner.py, as the shards' owner
 * Writes      aivedio.queue_marks
 * Locks       nothing
 * Raises      VC601  the session does not own a shard
 */
create or replace function aivedio.read_shards(
  p_shards smallint[],
  p_limit  integer
)
returns setof aivedio.owed_message
language plpgsql
volatile
security definer  -- the relay reads messages without reading the table
set search_path = ''
as $read_shards$
declare
  v_shard smallint;
  v_found integer;
  v_left  integer := p_limit;
begin
  foreach v_shard in array p_shards
  loop
    return query
    select v_shard, owed.id, owed.task_id, owed.tag, owed.body, owed.retry_count
    from aivedio.read_outbox(v_shard, v_left) as owed;

    get diagnostics v_found = row_count;
    v_left := v_left - v_found;
    exit when v_left <= 0;
  end loop;
end;
$read_shards$;

comment on function aivedio.read_shards is
  'Stage 60: what several owned shards owe the bus, up to p_limit rows, each shard oldest first.';

grant execute on function aivedio.read_shards to aivedio_relay;
