/*
 * Provider · Replicate
 *
 * Facts are from Replicate's documentation and SDKs. What they leave open is decided the careful way:
 *
 *   - no idempotency key and no metadata: our callback URL carries a token that names the attempt
 *   - no progress field: the percentage is read from the progress bar in the logs, where there is one
 *   - whether a fresh prediction can answer 404 for a moment: not said, so it has a minute's grace
 *   - how a failed prediction words its error: not said, so the rules look for the plain words only
 *   - status "aborted" (deadline passed before the start) is missing in the SDKs' lists, and real
 *   - a prediction's input, output and logs are removed an hour after its end
 */
select aivedio.define_provider('replicate', $profile$
{
  "base_url": "https://api.replicate.com",
  "auth": {"kind": "bearer", "header": "authorization", "prefix": "Bearer ", "secret": "env:REPLICATE_API_TOKEN"},
  "models": {},
  "submit": {
    "method": "POST",
    "path": "/v1/predictions",
    "headers": {"content-type": "application/json"},
    "body": {
      "version": "{model}",
      "input": "{input}",
      "webhook": "{callback_url}",
      "webhook_events_filter": ["start", "output", "logs", "completed"]
    },
    "accepted": [200, 201, 202],
    "provider_task_id": "$.id",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/v1/predictions/{provider_task_id}",
    "timeout_s": 15,
    "max_bytes": 1048576,
    "interval_s": {"submitted": [2, 5], "queued": [10, 30], "running": [5, 15]},
    "cap_s": 300,
    "not_found_grace_s": 60
  },
  "cancel": {"method": "POST", "path": "/v1/predictions/{provider_task_id}/cancel", "confirmed": [200, 201, 202], "timeout_s": 15},
  "webhook": {
    "scheme": "standard-webhooks-v1",
    "secrets": [
      {"ref": "env:REPLICATE_WEBHOOK_SECRET", "version": "current"},
      {"ref": "env:REPLICATE_WEBHOOK_SECRET_PREVIOUS", "version": "previous"}
    ],
    "tolerance_s": 300,
    "event_id_header": "webhook-id",
    "signed": true,
    "required": ["$.id", "$.status"],
    "max_body": 262144,
    "content_types": ["application/json"],
    "keep_headers": ["webhook-id", "webhook-timestamp"],
    "acknowledge": {"status": 204, "body": null}
  },
  "fields": {
    "provider_task_id": "$.id",
    "status": "$.status",
    "progress": "$.logs",
    "progress_match": "(?:^|[^0-9.])([0-9]{1,3})%\\|",
    "progress_scale": 100,
    "sequence": null,
    "revision": null,
    "occurred_at": ["$.completed_at", "$.started_at", "$.created_at"],
    "error_code": null,
    "error_message": "$.error",
    "outputs": "$.output",
    "client_request_id": null
  },
  "words": {
    "webhook": {
      "starting": "queued", "processing": "running", "succeeded": "succeeded",
      "failed": "failed", "canceled": "canceled", "aborted": "canceled"
    },
    "poll": {
      "starting": "queued", "processing": "running", "succeeded": "succeeded",
      "failed": "failed", "canceled": "canceled", "aborted": "canceled"
    }
  },
  "hidden_failures": [
    {"when": "$.data_removed == true && !exists($.output ? (@ != null))", "class": "output_expired", "code": "provider_failed"}
  ],
  "success_needs_output": true,
  "errors": [
    {"match": "nsfw|sensitive content|content polic|moderation|safety", "class": "content_refused", "code": "content_refused"},
    {"match": "timed? ?out|deadline", "class": "provider_timeout", "code": "timed_out"},
    {"match": "rate limit|throttl|too many requests|at capacity|queue is full", "class": "provider_busy", "code": "provider_busy"},
    {"match": "invalid input|validation|unprocessable", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 3600,
  "deadline_s": 2700,
  "retry_span_s": 3600,
  "quota": {"provider": 50, "model": 50},
  "redact": ["$.input", "$.webhook"],
  "redact_after": ["$.logs"]
}
$profile$::jsonb);
