/*
 * Stage 90 · operate · echo
 *
 * Notifies the channel aivedio_echo, and answers with the server's time: whoever listens learns whether
 * notifications reach it, and how far its clock is off.
 *
 * Called by   edge/operate/doctor.py
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.echo(p_token text)
returns timestamptz
language plpgsql
volatile
security definer  -- like every public function; it needs no privilege of the owner
set search_path = ''
as $echo$
begin
  perform pg_catalog.pg_notify('aivedio_echo', pg_catalog.left(p_token, 100));
  return aivedio._clock();
end;
$echo$;

comment on function aivedio.echo is
  'Stage 90: notify aivedio_echo with a token, and answer with the server''s time.';

grant execute on function aivedio.echo to aivedio_operator;
