/*
 * Provider · MiniMax Hailuo, V1
 *
 * Facts are from MiniMax's documentation. A task's model is MiniMax's, such as MiniMax-Hailuo-02; its input is the request
 * without model and callback_url. What the facts leave open is decided the careful way:
 *
 *   - callbacks are not signed: each is a hint, and the poll it causes tells the state. Before the first one MiniMax asks
 *     for a challenge to be echoed within three seconds
 *   - answers say Success and Fail, callbacks success and failed: the words are kept apart
 *   - errors come as HTTP 200 with base_resp.status_code: 1002 is tried again, 1004 and 2049 are the credential's, any
 *     other refuses a submission, and makes a query without a status one to be repeated
 *   - a success names a file; its URL, which lives an hour, is asked for by a second request
 *   - there is no progress and no cancel
 *   - how often one may poll, and how callbacks are retried, is not said: five a second, three days
 */
select aivedio.define_provider('minimax', $profile$
{
  "base_url": "https://api.minimax.io",
  "auth": {"kind": "bearer", "header": "authorization", "prefix": "Bearer ", "secret": "env:MINIMAX_API_KEY"},
  "submit": {
    "method": "POST",
    "path": "/v1/video_generation",
    "headers": {"content-type": "application/json"},
    "body": {"...": "{input}", "model": "{model}", "callback_url": "{callback_url}"},
    "accepted": [200],
    "answers": [
      {"when": "$.base_resp.status_code == 1002", "means": "throttled"},
      {"when": "$.base_resp.status_code == 1004 || $.base_resp.status_code == 2049", "means": "auth"},
      {"when": "$.base_resp.status_code != 0", "means": "refused"}
    ],
    "provider_task_id": "$.task_id",
    "error_message": "$.base_resp.status_msg",
    "error_code": "$.base_resp.status_code",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/v1/query/video_generation",
    "query": {"task_id": "{provider_task_id}"},
    "answers": [
      {"when": "$.base_resp.status_code == 1002", "means": "throttled"},
      {"when": "$.base_resp.status_code == 1004 || $.base_resp.status_code == 2049", "means": "auth"},
      {"when": "$.base_resp.status_code != 0 && !exists($.status ? (@ != \"\"))", "means": "retry"}
    ],
    "timeout_s": 15,
    "interval_s": {"submitted": [3, 5], "queued": [10, 30], "running": [10, 20]},
    "cap_s": 300,
    "not_found_grace_s": 60,
    "then": {
      "when": "$.status == \"Success\" && exists($.file_id ? (@ != null && (@.type() == \"number\" || @ != \"\")))",
      "method": "GET",
      "path": "/v1/files/retrieve",
      "query": {"file_id": "{answer.file_id}"},
      "into": "retrieved",
      "answers": [
        {"when": "$.base_resp.status_code == 1002", "means": "throttled"},
        {"when": "$.base_resp.status_code == 1004 || $.base_resp.status_code == 2049", "means": "auth"},
        {"when": "$.base_resp.status_code != 0", "means": "retry"}
      ],
      "timeout_s": 15
    }
  },
  "cancel": null,
  "webhook": {
    "signed": false,
    "challenge": "challenge",
    "max_body": 262144,
    "content_types": ["application/json"],
    "acknowledge": {"status": 200, "body": null}
  },
  "fields": {
    "provider_task_id": "$.task_id",
    "status": "$.status",
    "error_code": "$.base_resp.status_code",
    "error_message": "$.base_resp.status_msg",
    "outputs": "$.retrieved.file.download_url"
  },
  "words": {
    "webhook": {"processing": "running", "success": "succeeded", "failed": "failed"},
    "poll": {
      "Preparing": "queued", "Queueing": "queued", "Processing": "running", "Success": "succeeded", "Fail": "failed"
    }
  },
  "success_needs_output": true,
  "errors": [
    {"match": "^(1026|1027)\\M|sensitive|moderation|content polic", "class": "content_refused", "code": "content_refused"},
    {"match": "^1002\\M|rate limit|too many", "class": "provider_busy", "code": "provider_busy"},
    {"match": "^1008\\M|balance", "class": "no_balance", "code": "provider_busy"},
    {"match": "^2013\\M|invalid param", "class": "invalid_input", "code": "provider_rejected"},
    {"match": "timed? ?out", "class": "provider_timeout", "code": "timed_out"}
  ],
  "output_lifetime_s": 3600,
  "deadline_s": 21600,
  "retry_span_s": 259200,
  "quota": {"provider": 5, "model": 5}
}
$profile$::jsonb);
