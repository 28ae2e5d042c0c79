/*
 * Provider · Mux, as a transcoder
 *
 * Facts are from Mux's SDKs and documentation. A job is an asset; a task's model is only a name, its input is the request
 * without passthrough: {"inputs": [{"url": …}], "playback_policies": ["public"]}. What the facts leave open is decided the
 * careful way:
 *
 *   - callbacks are the environment's: register <callback base>/callbacks/mux in Mux, and set its secret. Use an
 *     environment of its own: events of assets that somebody else made there end as dead callbacks, with an alarm
 *   - an event's id stands in its body. Events of tracks and renditions have an id and a status of their own: only what
 *     is about an asset is read
 *   - progress is a percentage, and -1 where it is not known
 *   - DELETE removes an asset: it is sent only when a poll has just said that it is not ready. A 404 after that means
 *     canceled
 *   - an output is the asset's stream (HLS) of each playback id; without playback policy there is none
 *   - Mux limits polls and does not say how: one a second, and rarely, since callbacks tell
 *   - assets stay: outputs are taken to live a year
 */
select aivedio.define_provider('mux', $profile$
{
  "base_url": "https://api.mux.com/video/v1",
  "auth": {"kind": "basic", "id": "env:MUX_TOKEN_ID", "secret": "env:MUX_TOKEN_SECRET"},
  "submit": {
    "method": "POST",
    "path": "/assets",
    "headers": {"content-type": "application/json"},
    "body": {"...": "{input}", "passthrough": "{client_request_id}"},
    "accepted": [200, 201],
    "provider_task_id": "$.data.id",
    "error_message": ["$.error.messages[*]", "$.error.message"],
    "error_code": "$.error.type",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/assets/{provider_task_id}",
    "timeout_s": 15,
    "interval_s": {"submitted": [10, 20], "queued": [20, 60], "running": [20, 60]},
    "cap_s": 600,
    "not_found_grace_s": 60,
    "gone_after_cancel": true
  },
  "cancel": {
    "method": "DELETE",
    "path": "/assets/{provider_task_id}",
    "only_when": ["queued", "running"],
    "confirmed": [200, 204],
    "timeout_s": 15
  },
  "webhook": {
    "scheme": "t-v1-hex",
    "signature_header": "mux-signature",
    "secrets": [
      {"ref": "env:MUX_WEBHOOK_SECRET", "version": "current"},
      {"ref": "env:MUX_WEBHOOK_SECRET_PREVIOUS", "version": "previous"}
    ],
    "tolerance_s": 300,
    "event_id": "$.id",
    "signed": true,
    "required": ["$.id", "$.type"],
    "max_body": 262144,
    "content_types": ["application/json"],
    "acknowledge": {"status": 200, "body": null},
    "fields": {
      "provider_task_id": "$ ? (@.object.type == \"asset\").data.id",
      "client_request_id": "$ ? (@.object.type == \"asset\").data.passthrough",
      "event_type": "$.type",
      "status": "$ ? (@.object.type == \"asset\").data.status",
      "occurred_at": ["$.created_at"]
    }
  },
  "fields": {
    "provider_task_id": "$.data.id",
    "client_request_id": "$.data.passthrough",
    "status": "$.data.status",
    "progress": "$.data.progress.progress",
    "progress_scale": 100,
    "error_code": "$.data.errors.type",
    "error_message": "$.data.errors.messages[*]",
    "outputs": [{"path": "$.data.playback_ids[*].id", "url": "https://stream.mux.com/{}.m3u8"}]
  },
  "words": {
    "webhook": {"preparing": "running", "ready": "succeeded", "errored": "failed"},
    "poll": {"preparing": "running", "ready": "succeeded", "errored": "failed"}
  },
  "success_needs_output": false,
  "errors": [
    {"match": "invalid|unsupported|corrupt|no.?such|not found", "class": "invalid_input", "code": "provider_rejected"},
    {"match": "timed? ?out", "class": "provider_timeout", "code": "timed_out"},
    {"match": "rate.?limit|too many|plan limit", "class": "provider_busy", "code": "provider_busy"}
  ],
  "output_lifetime_s": 31536000,
  "deadline_s": 43200,
  "retry_span_s": 86400,
  "quota": {"provider": 1, "model": 1}
}
$profile$::jsonb);
