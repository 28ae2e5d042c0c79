-- Notes where the id sequences stand, for put_back_sequences.sql.
select
  coalesce(pg_sequence_last_value('aivedio.task_event_ids'), 1) as kept_events,
  coalesce(pg_sequence_last_value('aivedio.outbox_ids'), 1) as kept_outbox,
  coalesce(pg_sequence_last_value('aivedio.observation_ids'), 1) as kept_observations
\gset
