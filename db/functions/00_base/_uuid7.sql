/*
 * Stage 00 · base · _uuid7
 *
 * Makes a version 7 UUID (RFC 9562, 5.7): 48 bits of Unix milliseconds, then random bits, so
 * that new rows land at the right edge of their index. PostgreSQL has its own from 18 on.
 *
 * Called by   every function that makes an id
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._uuid7()
returns uuid
language sql
volatile
set search_path = ''
as $_uuid7$
  select pg_catalog.encode(
    pg_catalog.set_byte(
      pg_catalog.overlay(
        pg_catalog.uuid_send(pg_catalog.gen_random_uuid()),
        pg_catalog.substr(
          pg_catalog.int8send((extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint), 3
        ),
        1, 6
      ),
      -- A random UUID is version 4 with the same variant bits: only the version nibble differs.
      6,
      112 + pg_catalog.floor(pg_catalog.random() * 16)::integer
    ),
    'hex'
  )::uuid;
$_uuid7$;

comment on function aivedio._uuid7 is
  'Stage 00: a new version 7 UUID (RFC 9562), ordered by the time it was made.';
