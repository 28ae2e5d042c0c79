/*
 * Provider · Kling, the API of its models before 3.0
 *
 * Facts are from Kling's documentation of callbacks and its own ComfyUI client. A task's model is the endpoint and
 * Kling's model, such as text2video/kling-v1-6; its input is the request, whose model_name, callback_url and
 * external_task_id we set. What the facts leave open is decided the careful way:
 *
 *   - each request carries a token signed with the secret key, for half an hour, from five seconds ago
 *   - errors, signatures and retries are as with kling; here success is the word "succeed"
 *   - callbacks carry the task's fields at their top. Whether they name external_task_id is not said: the token in
 *     their URL names the attempt
 *   - there is no progress, no cancel and no canceled state. Outputs live 30 days
 */
select aivedio.define_provider('kling_legacy', $profile$
{
  "base_url": "https://api.klingai.com",
  "auth": {
    "kind": "jwt-hs256", "header": "authorization", "prefix": "Bearer ",
    "id": "env:KLING_ACCESS_KEY", "secret": "env:KLING_SECRET_KEY", "lifetime_s": 1800, "early_s": 5
  },
  "values": {
    "endpoint": {"from": "model", "match": "^([a-z0-9-]*2[a-z0-9-]+)/", "default": "text2video"},
    "name": {"from": "model", "match": "([^/]+)$"}
  },
  "submit": {
    "method": "POST",
    "path": "/v1/videos/{endpoint}",
    "headers": {"content-type": "application/json"},
    "body": {
      "...": "{input}",
      "model_name": "{name}", "callback_url": "{callback_url}", "external_task_id": "{client_request_id}"
    },
    "accepted": [200],
    "answers": [
      {"when": "$.code == 1303", "means": "throttled"},
      {"when": "$.code != 0", "means": "refused"}
    ],
    "provider_task_id": "$.data.task_id",
    "error_message": "$.message",
    "error_code": "$.code",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/v1/videos/{endpoint}/{provider_task_id}",
    "answers": [
      {"when": "$.code == 1303", "means": "throttled"},
      {"when": "$.code != 0", "means": "retry"}
    ],
    "timeout_s": 15,
    "interval_s": {"submitted": [3, 5], "queued": [10, 30], "running": [5, 15]},
    "cap_s": 300,
    "not_found_grace_s": 60
  },
  "cancel": null,
  "webhook": {
    "scheme": "standard-webhooks-v1",
    "secrets": [
      {"ref": "env:KLING_WEBHOOK_SECRET", "version": "current"},
      {"ref": "env:KLING_WEBHOOK_SECRET_PREVIOUS", "version": "previous"}
    ],
    "tolerance_s": 300,
    "event_id_header": "webhook-id",
    "signed": true,
    "required": ["$.task_id", "$.task_status"],
    "max_body": 262144,
    "content_types": ["application/json"],
    "keep_headers": ["webhook-id", "webhook-timestamp"],
    "acknowledge": {"status": 200, "body": null},
    "fields": {
      "provider_task_id": "$.task_id",
      "status": "$.task_status",
      "occurred_at": ["$.updated_at"],
      "error_message": "$.task_status_msg",
      "outputs": "$.task_result.videos"
    }
  },
  "fields": {
    "provider_task_id": "$.data.task_id",
    "status": "$.data.task_status",
    "occurred_at": ["$.data.updated_at"],
    "error_message": "$.data.task_status_msg",
    "outputs": "$.data.task_result.videos"
  },
  "words": {
    "webhook": {"submitted": "queued", "processing": "running", "succeed": "succeeded", "failed": "failed"},
    "poll": {"submitted": "queued", "processing": "running", "succeed": "succeeded", "failed": "failed"}
  },
  "success_needs_output": true,
  "errors": [
    {"match": "risk control|sensitive|content polic|moderation|safety|nsfw", "class": "content_refused", "code": "content_refused"},
    {"match": "timed? ?out", "class": "provider_timeout", "code": "timed_out"},
    {"match": "^1303|rate limit|too many|concurren|balance|resource pack", "class": "provider_busy", "code": "provider_busy"},
    {"match": "invalid|parameter", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 2592000,
  "deadline_s": 21600,
  "retry_span_s": 259200,
  "quota": {"provider": 20, "model": 20}
}
$profile$::jsonb);
