/*
 * Provider · Volcengine Ark, Seedance
 *
 * Facts are from Ark's documentation and SDK. A task's model is Ark's model or endpoint id; its input is the request
 * without model and callback_url. BytePlus ModelArk is the same API under another base URL. What the facts leave open is
 * decided the careful way:
 *
 *   - callbacks are not signed: each is a hint, and the poll it causes tells the state
 *   - DELETE cancels a job that waits, is refused while one runs, and erases one that is finished: it is sent only when a
 *     poll has just said "queued". A 404 after our own cancel means canceled
 *   - "expired" (not done in time, 48 hours unless the request says otherwise) is a failure
 *   - Ark repeats callbacks three times, five seconds each; what it takes for success is not said: 200
 *   - there is no progress. Outputs live 24 hours. How often one may poll is not said: five a second
 */
select aivedio.define_provider('seedance', $profile$
{
  "base_url": "https://ark.cn-beijing.volces.com/api/v3",
  "auth": {"kind": "bearer", "header": "authorization", "prefix": "Bearer ", "secret": "env:ARK_API_KEY"},
  "submit": {
    "method": "POST",
    "path": "/contents/generations/tasks",
    "headers": {"content-type": "application/json"},
    "body": {"...": "{input}", "model": "{model}", "callback_url": "{callback_url}"},
    "accepted": [200, 201],
    "provider_task_id": "$.id",
    "error_message": "$.error.message",
    "error_code": "$.error.code",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/contents/generations/tasks/{provider_task_id}",
    "timeout_s": 15,
    "interval_s": {"submitted": [3, 5], "queued": [10, 30], "running": [5, 15]},
    "cap_s": 300,
    "not_found_grace_s": 60,
    "gone_after_cancel": true
  },
  "cancel": {
    "method": "DELETE",
    "path": "/contents/generations/tasks/{provider_task_id}",
    "only_when": ["queued"],
    "confirmed": [200, 204],
    "timeout_s": 15
  },
  "webhook": {
    "signed": false,
    "max_body": 262144,
    "content_types": ["application/json"],
    "acknowledge": {"status": 200, "body": null}
  },
  "fields": {
    "provider_task_id": "$.id",
    "status": "$.status",
    "occurred_at": ["$.updated_at"],
    "error_code": ["$.error.code", "$.status"],
    "error_message": "$.error.message",
    "outputs": [{"path": "$.content.video_url"}, {"path": "$.content.last_frame_url", "kind": "image"}]
  },
  "words": {
    "webhook": {
      "queued": "queued", "running": "running", "succeeded": "succeeded", "failed": "failed",
      "cancelled": "canceled", "expired": "failed"
    },
    "poll": {
      "queued": "queued", "running": "running", "succeeded": "succeeded", "failed": "failed",
      "cancelled": "canceled", "expired": "failed"
    }
  },
  "success_needs_output": true,
  "errors": [
    {"match": "sensitive|moderation|content polic|risk", "class": "content_refused", "code": "content_refused"},
    {"match": "^expired|timed? ?out", "class": "provider_timeout", "code": "timed_out"},
    {"match": "rate.?limit|quota|overdue|too many", "class": "provider_busy", "code": "provider_busy"},
    {"match": "invalid.?(parameter|input)|missing.?parameter", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 86400,
  "deadline_s": 176400,
  "retry_span_s": 259200,
  "quota": {"provider": 5, "model": 5}
}
$profile$::jsonb);
