-- Moves the id sequences back to where keep_sequences.sql found them: setval survives the rollback.
select
  setval('aivedio.task_event_ids', :kept_events),
  setval('aivedio.outbox_ids', :kept_outbox),
  setval('aivedio.observation_ids', :kept_observations)
\g /dev/null
