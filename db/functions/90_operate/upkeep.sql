/*
 * Stage 90 · operate · upkeep
 *
 * One round of everything that must happen now and then, exactly one at a time however many call it. p_step names the
 * part, so that each runs in a transaction of its own: the process, or pg_cron, calls them in turn. Steps:
 * task_events, outbox_events, observations (their partitions), purge, media (operations whose workers vanish), streams
 * (the chains of events), callbacks (how well they cover each provider), alarms (what waits too long, and jobs past
 * their deadline that cannot be asked about).
 *
 * Called by   edge/operate/upkeep.py; pg_cron
 * Writes      what the steps write
 * Locks       an advisory lock until commit; a second caller does nothing
 * Raises      VC902  there is no such step
 */
create or replace function aivedio.upkeep(p_step text)
returns jsonb
language plpgsql
volatile
security definer  -- operators run upkeep without the privileges of its parts
set search_path = ''
as $upkeep$
begin
  if p_step not in (
    'task_events', 'outbox_events', 'observations', 'purge', 'media', 'streams', 'callbacks', 'alarms'
  ) then
    raise exception 'there is no such step of upkeep'
      using errcode = 'VC902',
            detail  = pg_catalog.format('step %s', p_step),
            hint    = 'Use task_events, outbox_events, observations, purge, media, streams, callbacks or alarms.';
  end if;

  if not pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtext('aivedio_upkeep'), 0) then
    return pg_catalog.jsonb_build_object('step', p_step, 'ran', false);
  end if;

  return pg_catalog.jsonb_build_object(
    'step', p_step,
    'ran', true,
    'result', case p_step
      when 'purge' then pg_catalog.to_jsonb(aivedio.purge())
      when 'media' then pg_catalog.to_jsonb(aivedio._give_up_media())
      when 'streams' then pg_catalog.to_jsonb(aivedio.check_streams())
      when 'callbacks' then pg_catalog.to_jsonb(aivedio._watch_callbacks())
      when 'alarms' then pg_catalog.to_jsonb(aivedio._watch_attempts() + aivedio._watch_queues())
      else pg_catalog.to_jsonb(aivedio.keep_partitions(p_step))
    end
  );
end;
$upkeep$;

comment on function aivedio.upkeep is
  'Stage 90: run one step of upkeep, unless another session does: {step, ran, result}.';

grant execute on function aivedio.upkeep to aivedio_operator;
