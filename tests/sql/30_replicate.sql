-- Stage 30: Replicate's profile understands the bodies that Replicate documents.
begin;
\ir support/fixtures.sql
select plan(36);

-- A prediction as Replicate sends it, in callbacks and answers alike.
create function pg_temp.prediction(p_change jsonb)
returns jsonb
language sql
as $prediction$
  select '{
    "id": "ufawqhfynnddngldkgtslldrkq",
    "version": "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa",
    "created_at": "2026-06-24T03:01:06.224088Z", "started_at": null, "completed_at": null,
    "status": "starting", "input": {"prompt": "a lighthouse"}, "output": null, "error": null, "logs": "", "metrics": {},
    "urls": {"get": "https://api.replicate.com/v1/predictions/u", "cancel": "https://api.replicate.com/v1/predictions/u/cancel"}
  }'::jsonb || p_change;
$prediction$;

create temporary table example (place integer, change jsonb, status text, progress integer, code text, outputs integer, at text);
insert into example values
  (1, '{}', 'queued', null, null, null, '2026-06-24T03:01:06.224088Z'),
  (2, '{"status": "processing", "started_at": "2026-06-24T03:02:00Z"}', 'running', null, null, null, '2026-06-24T03:02:00Z'),
  (3, '{"status": "processing", "logs": "Loading\n  3%|▎         | 1/30 [00:01<00:29]\n 47%|████▋     | 14/30 [00:14<00:16]\n"}', 'running', 47, null, null, '2026-06-24T03:01:06.224088Z'),
  (4, '{"status": "processing", "logs": "100%|██████████| 30/30\n"}', 'running', 100, null, null, '2026-06-24T03:01:06.224088Z'),
  (5, '{"status": "processing", "logs": "GPU at 99% of 1.5% load"}', 'running', null, null, null, '2026-06-24T03:01:06.224088Z'),
  (6, '{"status": "processing", "logs": null}', 'running', null, null, null, '2026-06-24T03:01:06.224088Z'),
  (7, '{"status": "succeeded", "output": "https://replicate.delivery/a/out.mp4", "completed_at": "2026-06-24T03:09:00Z"}', 'succeeded', null, null, 1, '2026-06-24T03:09:00Z'),
  (8, '{"status": "succeeded", "output": ["https://replicate.delivery/a/0.mp4", "https://replicate.delivery/a/1.mp4"]}', 'succeeded', null, null, 2, '2026-06-24T03:01:06.224088Z'),
  (9, '{"status": "succeeded", "output": {"video": "https://replicate.delivery/a.mp4", "url": "https://replicate.delivery/a.mp4"}}', 'succeeded', null, null, 1, '2026-06-24T03:01:06.224088Z'),
  (10, '{"status": "succeeded", "output": null, "data_removed": true}', 'failed', null, 'provider_failed', null, '2026-06-24T03:01:06.224088Z'),
  (11, '{"status": "failed", "error": "CUDA out of memory"}', 'failed', null, 'provider_failed', null, '2026-06-24T03:01:06.224088Z'),
  (12, '{"status": "failed", "error": "NSFW content detected. Try running it again, or try a different prompt."}', 'failed', null, 'content_refused', null, '2026-06-24T03:01:06.224088Z'),
  (13, '{"status": "failed", "error": "Prediction timed out"}', 'failed', null, 'timed_out', null, '2026-06-24T03:01:06.224088Z'),
  (14, '{"status": "failed", "error": null}', 'failed', null, 'provider_failed', null, '2026-06-24T03:01:06.224088Z'),
  (15, '{"status": "canceled"}', 'canceled', null, 'canceled_by_provider', null, '2026-06-24T03:01:06.224088Z'),
  (16, '{"status": "aborted"}', 'canceled', null, 'canceled_by_provider', null, '2026-06-24T03:01:06.224088Z'),
  (17, '{"status": "paused"}', null, null, null, null, '2026-06-24T03:01:06.224088Z');

-- The same body means the same, whichever way it comes.
select results_eq(
  format(
    $$
      select said.normalized_status, said.progress::integer, said.error_code, jsonb_array_length(said.output_refs), said.provider_occurred_at
      from aivedio.normalise('replicate', %L, %L, '{"status": 200}') as said
    $$,
    source.name, pg_temp.prediction(example.change)
  ),
  format(
    'values (%L::text, %L::integer, %L::text, %L::integer, %L::timestamptz)',
    example.status, example.progress, example.code, example.outputs, example.at
  ),
  format('%s %s: %s', source.name, example.place, coalesce(example.status, 'an unknown word'))
)
from example
cross join (values ('webhook'), ('poll')) as source (name)
order by example.place, source.name;

select is(
  aivedio._redact(
    aivedio._redact(pg_temp.prediction('{"webhook": "https://us.example/tok", "logs": "private", "output": "https://x.example/o.mp4"}'), aivedio._profile('replicate') -> 'redact'),
    (aivedio._profile('replicate') -> 'redact_after') || aivedio._output_paths(aivedio._profile('replicate'))
  ) @> '{"input": "[redacted]", "webhook": "[redacted]", "logs": "[redacted]", "output": "[redacted]", "status": "starting"}',
  true, 'of an applied callback neither what was asked for nor what was made is kept'
);
select is(
  (aivedio.normalise('replicate', 'webhook', pg_temp.prediction('{}'))).provider_task_id, 'ufawqhfynnddngldkgtslldrkq', 'its id'
);

select finish();
rollback;
