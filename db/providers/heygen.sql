/*
 * Provider · HeyGen, v3
 *
 * Facts are from HeyGen's command line and reference. HeyGen has no models: a task's model is only a name; its input is the
 * request without callback_id. What the facts leave open is decided the careful way:
 *
 *   - callbacks of a registered endpoint are signed, those to a job's own callback_url are not. So no callback_url is
 *     sent: register <callback base>/callbacks/heygen in HeyGen, and set its secret. The base is the one that
 *     aivedio submit is given
 *   - the signature covers the body alone: neither its event id nor its timestamp identify anything, a repeat is
 *     recognised by its body
 *   - events of other kinds than avatar_video come without being subscribed to: an unknown word changes nothing
 *   - a submission carries an idempotency key, but is never sent twice; 409 means that one is under way: not known
 *   - there is no progress and no cancel: DELETE destroys
 *   - outputs are signed URLs whose lifetime is not said: an hour. How often one may poll is not said: five a second
 */
select aivedio.define_provider('heygen', $profile$
{
  "base_url": "https://api.heygen.com",
  "auth": {"kind": "header", "header": "x-api-key", "secret": "env:HEYGEN_API_KEY"},
  "submit": {
    "method": "POST",
    "path": "/v3/videos",
    "headers": {"content-type": "application/json", "idempotency-key": "{client_request_id}"},
    "body": {"...": "{input}", "callback_id": "{client_request_id}"},
    "accepted": [200, 201, 202],
    "http": {"409": "retry"},
    "provider_task_id": "$.data.video_id",
    "error_message": "$.error.message",
    "error_code": "$.error.code",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/v3/videos/{provider_task_id}",
    "timeout_s": 15,
    "interval_s": {"submitted": [3, 5], "queued": [10, 30], "running": [10, 20]},
    "cap_s": 300,
    "not_found_grace_s": 60
  },
  "cancel": null,
  "webhook": {
    "scheme": "heygen-hex-body",
    "secrets": [
      {"ref": "env:HEYGEN_WEBHOOK_SECRET", "version": "current"},
      {"ref": "env:HEYGEN_WEBHOOK_SECRET_PREVIOUS", "version": "previous"}
    ],
    "signed": true,
    "required": ["$.event_type", "$.event_data.video_id"],
    "max_body": 262144,
    "content_types": ["application/json"],
    "keep_headers": ["heygen-event-id", "heygen-timestamp"],
    "acknowledge": {"status": 200, "body": null},
    "fields": {
      "provider_task_id": "$.event_data.video_id",
      "client_request_id": "$.event_data.callback_id",
      "event_type": "$.event_type",
      "status": "$.event_type",
      "occurred_at": null,
      "error_code": null,
      "error_message": null,
      "outputs": "$.event_data.url"
    }
  },
  "fields": {
    "provider_task_id": "$.data.id",
    "status": "$.data.status",
    "occurred_at": ["$.data.completed_at"],
    "error_code": "$.data.failure_code",
    "error_message": "$.data.failure_message",
    "outputs": "$.data.video_url"
  },
  "words": {
    "webhook": {"avatar_video.success": "succeeded", "avatar_video.fail": "failed"},
    "poll": {
      "waiting": "queued", "pending": "queued", "queued": "queued", "processing": "running",
      "completed": "succeeded", "failed": "failed"
    }
  },
  "success_needs_output": true,
  "errors": [
    {"match": "moderat|nsfw|content.?polic|safety", "class": "content_refused", "code": "content_refused"},
    {"match": "timed? ?out", "class": "provider_timeout", "code": "timed_out"},
    {"match": "rate.?limit|quota|credit|too many", "class": "provider_busy", "code": "provider_busy"},
    {"match": "invalid|validation", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 3600,
  "deadline_s": 43200,
  "retry_span_s": 86400,
  "quota": {"provider": 5, "model": 5}
}
$profile$::jsonb);
