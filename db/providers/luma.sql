/*
 * Provider · Luma Dream Machine, the legacy API
 *
 * Facts are from Luma's SDK and changelog; Luma calls this API deprecated. A task's model is Luma's, such as ray-2; its
 * input is the request without model and callback_url. What the facts leave open is decided the careful way:
 *
 *   - callbacks are not signed: each is a hint, and the poll it causes tells the state
 *   - Luma takes only 200 for an answer, waits five seconds and tries three times within moments: a callback is easily
 *     lost, so polling never rests on them
 *   - DELETE deletes a generation; whether it stops one that runs is not said. There is no cancel: a task that should
 *     be canceled waits for its end
 *   - no progress; failure_reason is text without a code
 *   - created_at is the only time and says nothing about the latest change: no time is read
 *   - how long outputs live, how often one may poll, what a fresh id answers: not said. An hour, ten a second, a
 *     minute's grace
 */
select aivedio.define_provider('luma', $profile$
{
  "base_url": "https://api.lumalabs.ai/dream-machine/v1",
  "auth": {"kind": "bearer", "header": "authorization", "prefix": "Bearer ", "secret": "env:LUMAAI_API_KEY"},
  "submit": {
    "method": "POST",
    "path": "/generations/video",
    "headers": {"content-type": "application/json"},
    "body": {"...": "{input}", "model": "{model}", "callback_url": "{callback_url}"},
    "accepted": [200, 201],
    "provider_task_id": "$.id",
    "error_message": "$.detail",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/generations/{provider_task_id}",
    "timeout_s": 15,
    "interval_s": {"submitted": [3, 5], "queued": [10, 30], "running": [5, 15]},
    "cap_s": 300,
    "not_found_grace_s": 60
  },
  "cancel": null,
  "webhook": {
    "signed": false,
    "max_body": 262144,
    "content_types": ["application/json"],
    "acknowledge": {"status": 200, "body": null}
  },
  "fields": {
    "provider_task_id": "$.id",
    "status": "$.state",
    "error_message": "$.failure_reason",
    "outputs": [{"path": "$.assets.video"}, {"path": "$.assets.image", "kind": "image"}]
  },
  "words": {
    "webhook": {"queued": "queued", "dreaming": "running", "completed": "succeeded", "failed": "failed"},
    "poll": {"queued": "queued", "dreaming": "running", "completed": "succeeded", "failed": "failed"}
  },
  "success_needs_output": true,
  "errors": [
    {"match": "moderat|nsfw|content polic|safety", "class": "content_refused", "code": "content_refused"},
    {"match": "timed? ?out", "class": "provider_timeout", "code": "timed_out"},
    {"match": "rate limit|throttl|too many", "class": "provider_busy", "code": "provider_busy"},
    {"match": "invalid|validation", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 3600,
  "deadline_s": 21600,
  "retry_span_s": 3600,
  "quota": {"provider": 10, "model": 10},
  "redact": ["$.request"]
}
$profile$::jsonb);
