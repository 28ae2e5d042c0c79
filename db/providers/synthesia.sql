/*
 * Provider · Synthesia
 *
 * Facts are from Synthesia's OpenAPI description and documentation. Synthesia has no models: a task's model is only a name;
 * its input is the request without callbackId. What the facts leave open is decided the careful way:
 *
 *   - callbacks are the account's: register <callback base>/callbacks/synthesia in Synthesia, and set its secret
 *   - the content of a callback is not described: each is a hint that brings the video's id, and a poll tells the state
 *   - "approved" is a word of moderation whose meaning is not said: taken for running. "rejected" and "deleted" are
 *     failures
 *   - no event has an id: a repeat is recognised by its body. Synthesia tries three times within ten minutes
 *   - there is no progress and no cancel: DELETE destroys
 *   - a download URL lives for a time that is not said: an hour. How often one may poll is not said: one a second
 */
select aivedio.define_provider('synthesia', $profile$
{
  "base_url": "https://api.synthesia.io/v2",
  "auth": {"kind": "header", "header": "authorization", "secret": "env:SYNTHESIA_API_KEY"},
  "submit": {
    "method": "POST",
    "path": "/videos",
    "headers": {"content-type": "application/json"},
    "body": {"...": "{input}", "callbackId": "{client_request_id}"},
    "accepted": [200, 201],
    "provider_task_id": "$.id",
    "error_message": ["$.error", "$.context"],
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/videos/{provider_task_id}",
    "timeout_s": 15,
    "interval_s": {"submitted": [5, 10], "queued": [15, 30], "running": [15, 30]},
    "cap_s": 300,
    "not_found_grace_s": 60
  },
  "cancel": null,
  "webhook": {
    "scheme": "synthesia-hex",
    "secrets": [
      {"ref": "env:SYNTHESIA_WEBHOOK_SECRET", "version": "current"},
      {"ref": "env:SYNTHESIA_WEBHOOK_SECRET_PREVIOUS", "version": "previous"}
    ],
    "tolerance_s": 600,
    "signed": true,
    "thin": true,
    "required": ["$.type"],
    "max_body": 262144,
    "content_types": ["application/json"],
    "keep_headers": ["synthesia-timestamp"],
    "acknowledge": {"status": 200, "body": null},
    "fields": {
      "provider_task_id": "$.data.id",
      "client_request_id": "$.data.callbackId",
      "event_type": "$.type",
      "status": "$.type",
      "occurred_at": null,
      "error_code": null,
      "outputs": null
    }
  },
  "fields": {
    "provider_task_id": "$.id",
    "client_request_id": "$.callbackId",
    "status": "$.status",
    "occurred_at": ["$.lastUpdatedAt"],
    "error_code": "$.status",
    "outputs": "$.download"
  },
  "words": {
    "webhook": {"video.completed": "succeeded", "video.failed": "failed"},
    "poll": {
      "in_progress": "running", "approved": "running", "complete": "succeeded", "error": "failed",
      "rejected": "failed", "deleted": "failed"
    }
  },
  "success_needs_output": true,
  "errors": [
    {"match": "^rejected", "class": "rejected", "code": "provider_rejected"},
    {"match": "^deleted", "class": "deleted", "code": "provider_failed"},
    {"match": "rate.?limit|quota|too many", "class": "provider_busy", "code": "provider_busy"},
    {"match": "invalid|validation", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 3600,
  "deadline_s": 86400,
  "retry_span_s": 3600,
  "quota": {"provider": 1, "model": 1}
}
$profile$::jsonb);
