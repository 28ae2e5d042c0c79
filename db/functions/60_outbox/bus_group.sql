/*
 * Stage 60 · outbox · bus_group
 *
 * What a bus outside the database must know of a consumer group: the tags that it asks for, null for
 * all, and how often a message may be delivered before it is a dead letter.
 *
 * Called by   relay/rocketmq_subscription.py, as aivedio_consumer; aivedio topics create
 * Writes      nothing
 * Locks       nothing
 * Raises      VC612  there is no such consumer group
 */
create or replace function aivedio.bus_group(p_group text)
returns jsonb
language plpgsql
stable
security definer  -- a consumer may know its own group without reading the table
set search_path = ''
as $bus_group$
declare
  v_group jsonb;
begin
  select pg_catalog.jsonb_build_object('tags', consumers.tags, 'max_tries', consumers.max_tries)
  into v_group
  from aivedio.consumer_groups as consumers
  where consumers.name = p_group;

  if not found then
    raise exception 'there is no such consumer group'
      using errcode = 'VC612',
            detail  = pg_catalog.format('group %s', p_group),
            hint    = 'Groups are the rows of aivedio.consumer_groups.';
  end if;

  return v_group;
end;
$bus_group$;

comment on function aivedio.bus_group is
  'Stage 60: the tags and the number of tries of a consumer group, for a bus outside the database.';

grant execute on function aivedio.bus_group to aivedio_consumer, aivedio_operator;
