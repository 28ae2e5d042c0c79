/*
 * Provider · fal.ai, its queue
 *
 * Facts are from fal's documentation and its Python SDK. A task's model is fal's endpoint, such as
 * fal-ai/minimax/video-01; its input is the endpoint's own input. What the facts leave open is decided the careful way:
 *
 *   - requests are followed under owner/app, without the rest of the endpoint, as the SDK does; the URLs that fal
 *     returns are not used
 *   - COMPLETED is no success: an error may stand beside it, and the result, asked for by a second request, may be
 *     refused. 400 and 422 there are the job's failure; a server error is asked again, for a gateway may have made it
 *   - fal repeats a failed job up to ten times and calls back once, under the same request_id
 *   - what a canceled job reports is not known: whatever the next poll says counts
 *   - how long outputs live, how often one may poll, how fresh a request may be unknown: not said. Outputs are fetched
 *     within an hour, polls are kept to ten a second, a 404 has a minute's grace
 *   - endpoints differ in their outputs: video, videos, images, image and audio are known. Another shape counts as a
 *     success without an output, until an override of fields.outputs names it
 */
select aivedio.define_provider('fal', $profile$
{
  "base_url": "https://queue.fal.run",
  "auth": {"kind": "header", "header": "authorization", "prefix": "Key ", "secret": "env:FAL_KEY"},
  "values": {"app": {"from": "model", "match": "^((?:(?:workflows|comfy)/)?[^/]+/[^/]+)"}},
  "submit": {
    "method": "POST",
    "path": "/{+model}",
    "query": {"fal_webhook": "{callback_url}"},
    "headers": {"content-type": "application/json"},
    "body": "{input}",
    "accepted": [200, 201, 202],
    "provider_task_id": "$.request_id",
    "error_message": ["$.detail[*].msg", "$.detail"],
    "error_code": "$.error_type",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/{+app}/requests/{provider_task_id}/status",
    "timeout_s": 15,
    "interval_s": {"submitted": [2, 5], "queued": [10, 30], "running": [5, 15]},
    "cap_s": 300,
    "not_found_grace_s": 60,
    "then": {
      "when": "$.status == \"COMPLETED\" && !exists($.error ? (@ != null && (@.type() != \"string\" || @ != \"\"))) && !exists($.error_type ? (@ != null))",
      "method": "GET",
      "path": "/{+app}/requests/{provider_task_id}",
      "into": "payload",
      "http": {"400": "failed", "422": "failed"},
      "timeout_s": 20
    }
  },
  "cancel": {
    "method": "PUT",
    "path": "/{+app}/requests/{provider_task_id}/cancel",
    "confirmed": [200, 202],
    "http": {"404": "refused"},
    "timeout_s": 15
  },
  "webhook": {
    "scheme": "fal-ed25519",
    "jwks_url": "https://rest.alpha.fal.ai/.well-known/jwks.json",
    "tolerance_s": 300,
    "signed": true,
    "required": ["$.request_id", "$.status"],
    "max_body": 1048576,
    "content_types": ["application/json"],
    "keep_headers": ["x-fal-webhook-request-id", "x-fal-webhook-timestamp"],
    "acknowledge": {"status": 200, "body": null}
  },
  "fields": {
    "provider_task_id": "$.request_id",
    "status": "$.status",
    "error_code": ["$.error_type", "$.payload.detail[*].type"],
    "error_message": ["$.payload.detail[*].msg", "$.payload.detail", "$.payload_error", "$.error"],
    "outputs": [
      {"path": "$.payload.video"}, {"path": "$.payload.videos"},
      {"path": "$.payload.image", "kind": "image"}, {"path": "$.payload.images", "kind": "image"},
      {"path": "$.payload.audio", "kind": "audio"}
    ]
  },
  "words": {
    "webhook": {"OK": "succeeded", "ERROR": "failed"},
    "poll": {"IN_QUEUE": "queued", "IN_PROGRESS": "running", "COMPLETED": "succeeded"}
  },
  "hidden_failures": [
    {"when": "exists($.error ? (@ != null && (@.type() != \"string\" || @ != \"\"))) || exists($.error_type ? (@ != null))"}
  ],
  "success_needs_output": true,
  "errors": [
    {"match": "nsfw|sensitive content|content.?polic|moderation|safety", "class": "content_refused", "code": "content_refused"},
    {"match": "request_timeout|timed? ?out|deadline", "class": "provider_timeout", "code": "timed_out"},
    {"match": "rate.?limit|throttl|too many requests|at capacity", "class": "provider_busy", "code": "provider_busy"},
    {"match": "invalid input|validation|unprocessable|field required", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 3600,
  "deadline_s": 21600,
  "retry_span_s": 10800,
  "quota": {"provider": 10, "model": 10},
  "redact_after": ["$.payload"]
}
$profile$::jsonb);
