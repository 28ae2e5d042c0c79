/*
 * Stage 00 · base · database_id
 *
 * Names this database outside itself: Redis channels carry it, so that two installations
 * that share a Redis never hear each other.
 *
 * Called by   relay/dispatch.py, edge/gateway/feed.py
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.database_id()
returns uuid
language sql
stable
security definer  -- edges may know the identity without reading the table
set search_path = ''
as $database_id$
  select identity.database_id from aivedio.server_identity as identity;
$database_id$;

comment on function aivedio.database_id is
  'Stage 00: the identity of this database, the prefix of its Redis channels.';

grant execute on function aivedio.database_id to aivedio_relay, aivedio_consumer, aivedio_gateway, aivedio_operator;
