/*
 * Provider · Vidu
 *
 * Facts are from Vidu's documentation. A task's model is the endpoint and Vidu's model, such as img2video/viduq1, or an
 * endpoint alone that takes no model, such as template; its input is the request, whose model, callback_url and payload
 * we set. What the facts leave open is decided the careful way:
 *
 *   - other endpoints than text2video, img2video, template, template-story and trending-replicate need an override of values
 *   - the signature covers headers, not the body: a callback is a hint, whatever it says, and brings no id
 *   - the signing key is the API key. Who changes it breaks the callbacks of jobs that run
 *   - a job can be canceled until it is scheduled; then Vidu refuses. How a canceled job is called is not said: an
 *     unknown word changes nothing and raises an alarm
 *   - jobs for off-peak hours may take 48 hours: they are overdue an hour later
 *   - Vidu repeats callbacks of an end three times; when, within what time, and what it takes for success is not said:
 *     200, and three days
 *   - there is no progress and no time in an answer. Outputs live 24 hours. How often one may poll is not said: five
 *     a second
 */
select aivedio.define_provider('vidu', $profile$
{
  "base_url": "https://api.vidu.com",
  "auth": {"kind": "header", "header": "authorization", "prefix": "Token ", "secret": "env:VIDU_API_KEY"},
  "values": {
    "endpoint": {"from": "model", "match": "^(text2video|img2video|template|template-story|trending-replicate)(?:/|$)", "default": "no-such-endpoint"},
    "name": {"from": "model", "match": "/(.+)$"}
  },
  "submit": {
    "method": "POST",
    "path": "/ent/v2/{endpoint}",
    "headers": {"content-type": "application/json"},
    "body": {
      "...": "{input}",
      "model": "{name}", "callback_url": "{callback_url}", "payload": "{client_request_id}"
    },
    "accepted": [200, 201],
    "provider_task_id": "$.task_id",
    "error_message": "$.message",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/ent/v2/tasks/{provider_task_id}/creations",
    "timeout_s": 15,
    "interval_s": {"submitted": [3, 5], "queued": [10, 30], "running": [5, 15]},
    "cap_s": 300,
    "not_found_grace_s": 60
  },
  "cancel": {
    "method": "POST",
    "path": "/ent/v2/tasks/{provider_task_id}/cancel",
    "headers": {"content-type": "application/json"},
    "body": {},
    "confirmed": [200, 204],
    "timeout_s": 15
  },
  "webhook": {
    "scheme": "vidu-hmac",
    "secrets": [{"ref": "env:VIDU_API_KEY", "version": "current"}],
    "tolerance_s": 300,
    "signed": true,
    "max_body": 262144,
    "content_types": ["application/json"],
    "keep_headers": ["date", "x-request-nonce"],
    "acknowledge": {"status": 200, "body": null},
    "fields": {"provider_task_id": null, "client_request_id": null}
  },
  "fields": {
    "provider_task_id": "$.task_id",
    "client_request_id": "$.payload",
    "status": "$.state",
    "error_code": "$.err_code",
    "outputs": "$.creations"
  },
  "words": {
    "webhook": {
      "created": "queued", "queueing": "queued", "processing": "running", "success": "succeeded", "failed": "failed"
    },
    "poll": {
      "created": "queued", "queueing": "queued", "processing": "running", "success": "succeeded", "failed": "failed"
    }
  },
  "success_needs_output": true,
  "errors": [
    {"match": "audit|moderat|sensitive|safety|nsfw|content polic", "class": "content_refused", "code": "content_refused"},
    {"match": "timed? ?out", "class": "provider_timeout", "code": "timed_out"},
    {"match": "rate limit|too many|quota|credit", "class": "provider_busy", "code": "provider_busy"},
    {"match": "invalid|bad request", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 86400,
  "deadline_s": 176400,
  "retry_span_s": 259200,
  "quota": {"provider": 5, "model": 5}
}
$profile$::jsonb);
