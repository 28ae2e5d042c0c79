/*
 * Provider · Kling, the API of its 3.0 models
 *
 * Facts are from Kling's documentation. A task's model is the path that Kling names, such as text-to-video/kling-3.0; its
 * input is the request, whose options.callback_url and options.external_task_id we set. Older models: kling_legacy.
 * What the facts leave open is decided the careful way:
 *
 *   - whether the API key is sent as it is has not been confirmed; it is taken for a bearer token
 *   - the account must have a webhook secret: without one Kling sends callbacks without any signature, and they are
 *     refused. An override {"webhook": {"signed": false}} takes such callbacks as hints
 *   - errors come as HTTP 200 with a code: 1303 is "too many at once" and is tried again, any other code refuses a
 *     submission, and makes a query one to be repeated
 *   - a query answers with a list; an empty one is taken for "no such task"
 *   - no other path than one of a kling model is ever asked for, whatever a task names as its model
 *   - there is no progress, no cancel and no canceled state
 *   - the retries of callbacks are not described: repeats are recognised for three days
 *   - external_task_id could find a task whose submission was lost; that is not done by itself
 *   - bodies count milliseconds, the signed header seconds. Outputs live 30 days
 */
select aivedio.define_provider('kling', $profile$
{
  "base_url": "https://api-singapore.klingai.com",
  "auth": {"kind": "bearer", "header": "authorization", "prefix": "Bearer ", "secret": "env:KLING_API_KEY"},
  "values": {"route": {"from": "model", "match": "^([a-z0-9-]+/kling-[a-z0-9.-]+)$", "default": "no-such-model"}},
  "submit": {
    "method": "POST",
    "path": "/{+route}",
    "headers": {"content-type": "application/json"},
    "body": {
      "...": "{input}",
      "options": {"...": "{input.options}", "callback_url": "{callback_url}", "external_task_id": "{client_request_id}"}
    },
    "accepted": [200],
    "answers": [
      {"when": "$.code == 1303", "means": "throttled"},
      {"when": "$.code != 0", "means": "refused"}
    ],
    "provider_task_id": "$.data.id",
    "error_message": "$.message",
    "error_code": "$.code",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/tasks",
    "query": {"task_ids": "{provider_task_id}"},
    "answers": [
      {"when": "$.code == 1303", "means": "throttled"},
      {"when": "$.code != 0", "means": "retry"},
      {"when": "$.data.type() == \"array\" && $.data.size() == 0", "means": "not_found"}
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
    "required": ["$.id", "$.status"],
    "max_body": 262144,
    "content_types": ["application/json"],
    "keep_headers": ["webhook-id", "webhook-timestamp"],
    "acknowledge": {"status": 200, "body": null},
    "fields": {
      "provider_task_id": "$.id",
      "client_request_id": "$.external_id",
      "status": "$.status",
      "occurred_at": ["$.update_time"],
      "error_message": "$.message",
      "outputs": "$.outputs"
    }
  },
  "fields": {
    "provider_task_id": "$.data[0].id",
    "client_request_id": "$.data[0].external_id",
    "status": "$.data[0].status",
    "occurred_at": ["$.data[0].update_time"],
    "error_message": "$.data[0].message",
    "outputs": "$.data[0].outputs"
  },
  "words": {
    "webhook": {"submitted": "queued", "processing": "running", "succeeded": "succeeded", "failed": "failed"},
    "poll": {"submitted": "queued", "processing": "running", "succeeded": "succeeded", "failed": "failed"}
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
