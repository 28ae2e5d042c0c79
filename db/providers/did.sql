/*
 * Provider · D-ID
 *
 * Facts are from D-ID's OpenAPI description and documentation. A task's model is the kind of video: talks, clips, scenes,
 * expressives or animations; its input is the request without webhook and user_data. What the facts leave open is decided
 * the careful way:
 *
 *   - the key is sent as D-ID shows it, behind "Basic"
 *   - no signature of callbacks is described: each is a hint, and the poll it causes tells the state. D-ID calls https
 *     addresses only. What it takes for success, and how it repeats, is not said: 200, and three days
 *   - translations have words of their own and are not covered
 *   - there is no progress and no cancel: DELETE destroys
 *   - how long outputs live and how often one may poll is not said: an hour, five a second
 */
select aivedio.define_provider('did', $profile$
{
  "base_url": "https://api.d-id.com",
  "auth": {"kind": "header", "header": "authorization", "prefix": "Basic ", "secret": "env:DID_API_KEY"},
  "values": {"kind": {"from": "model", "match": "^(talks|clips|scenes|expressives|animations)(?:/|$)", "default": "no-such-kind"}},
  "submit": {
    "method": "POST",
    "path": "/{kind}",
    "headers": {"content-type": "application/json"},
    "body": {"...": "{input}", "webhook": "{callback_url}", "user_data": "{client_request_id}"},
    "accepted": [200, 201],
    "provider_task_id": "$.id",
    "error_message": "$.description",
    "error_code": "$.kind",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/{kind}/{provider_task_id}",
    "timeout_s": 15,
    "interval_s": {"submitted": [3, 5], "queued": [10, 30], "running": [5, 15]},
    "cap_s": 300,
    "not_found_grace_s": 60
  },
  "cancel": null,
  "webhook": {
    "signed": false,
    "max_body": 262144,
    "content_types": ["application/json"],
    "acknowledge": {"status": 200, "body": null}
  },
  "fields": {
    "provider_task_id": "$.id",
    "client_request_id": "$.user_data",
    "status": "$.status",
    "occurred_at": ["$.modified_at"],
    "error_code": "$.error.kind",
    "error_message": "$.error.description",
    "outputs": "$.result_url"
  },
  "words": {
    "webhook": {
      "created": "queued", "started": "running", "done": "succeeded", "error": "failed", "rejected": "failed"
    },
    "poll": {
      "created": "queued", "started": "running", "done": "succeeded", "error": "failed", "rejected": "failed"
    }
  },
  "success_needs_output": true,
  "errors": [
    {"match": "moderat|celebrit|nsfw|content.?polic|safety", "class": "content_refused", "code": "content_refused"},
    {"match": "timed? ?out", "class": "provider_timeout", "code": "timed_out"},
    {"match": "rate.?limit|insufficient.?credit|too ?many", "class": "provider_busy", "code": "provider_busy"},
    {"match": "invalid|validation|badrequest", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 3600,
  "deadline_s": 21600,
  "retry_span_s": 259200,
  "quota": {"provider": 5, "model": 5}
}
$profile$::jsonb);
