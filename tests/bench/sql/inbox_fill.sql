-- %(count)s callbacks that wait, one for each task in turn, as accept_callbacks stores them.
insert into aivedio.provider_callback_inbox (
  provider, dedup_key, provider_event_id, provider_task_id, received_at, signature_key_version, payload_hash, payload, headers
)
select
  'replicate', %(round)s || n, %(round)s || n, 'job' || n %% 2000, now(), 'current', '\x00',
  jsonb_build_object(
    'id', 'job' || n %% 2000, 'status', 'processing', 'created_at', to_char(now(), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'input', '{"prompt": "a lighthouse at dawn"}'::jsonb, 'logs', ''
  ),
  jsonb_build_object('webhook-id', %(round)s || n)
from generate_series(0, %(count)s - 1) as n
