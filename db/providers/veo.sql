/*
 * Provider · Google Veo, by the Gemini API
 *
 * Facts are from the Gemini API's documentation and SDKs. A task's model is Google's, such as veo-3.1-generate-preview; its
 * input is the request without webhookConfig: {"instances": […], "parameters": {…}}. What the facts leave open is decided
 * the careful way:
 *
 *   - an operation has no word for its status: it runs until it is done, and then has an error, samples, or no samples,
 *     because a filter took them: that is a failure
 *   - callbacks tell of successes alone, and whether their token covers the body is not said: each is a hint, and
 *     failures are found by polls. The audience of the tokens must be set; without it callbacks are refused
 *   - there is no progress, no queued state and no cancel
 *   - polls are ten seconds apart. Files live two days, and fetching one needs the API key and follows redirects
 *   - how often one may poll is not said: five a second. What a fresh operation answers is not said: a minute's grace
 */
select aivedio.define_provider('veo', $profile$
{
  "base_url": "https://generativelanguage.googleapis.com/v1beta",
  "auth": {"kind": "header", "header": "x-goog-api-key", "secret": "env:GEMINI_API_KEY"},
  "submit": {
    "method": "POST",
    "path": "/models/{model}:predictLongRunning",
    "headers": {"content-type": "application/json"},
    "body": {
      "...": "{input}",
      "webhookConfig": {"uris": ["{callback_url}"], "userMetadata": {"client_request_id": "{client_request_id}"}}
    },
    "accepted": [200],
    "provider_task_id": "$.name",
    "error_message": "$.error.message",
    "error_code": "$.error.status",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/{+provider_task_id}",
    "timeout_s": 15,
    "interval_s": {"submitted": [12.5, 15], "queued": [12.5, 30], "running": [12.5, 20]},
    "cap_s": 300,
    "not_found_grace_s": 60
  },
  "cancel": null,
  "webhook": {
    "scheme": "gemini-dynamic-jwt",
    "jwks_url": "https://generativelanguage.googleapis.com/.well-known/jwks.json",
    "audience": "env:GEMINI_WEBHOOK_AUDIENCE",
    "tolerance_s": 300,
    "signed": true,
    "thin": true,
    "max_body": 262144,
    "content_types": ["application/json"],
    "keep_headers": ["webhook-id", "webhook-timestamp"],
    "acknowledge": {"status": 200, "body": null},
    "fields": {"provider_task_id": null, "status": "$.type"}
  },
  "fields": {
    "provider_task_id": "$.name",
    "status": [
      {"when": "$.done == true && exists($.error)", "word": "done with an error"},
      {"when": "$.done == true && exists($.response)", "word": "done"},
      {"when": "exists($.name) && !exists($.done ? (@ == true))", "word": "not done"}
    ],
    "error_code": "$.error.code",
    "error_message": ["$.error.message", "$.response.generateVideoResponse.raiMediaFilteredReasons[*]"],
    "outputs": "$.response.generateVideoResponse.generatedSamples[*].video.uri"
  },
  "words": {
    "webhook": {"video.generated": "succeeded"},
    "poll": {"not done": "running", "done": "succeeded", "done with an error": "failed"}
  },
  "hidden_failures": [
    {
      "when": "$.done == true && !exists($.response.generateVideoResponse.generatedSamples[*].video.uri) && (exists($.response.generateVideoResponse.raiMediaFilteredReasons[*]) || exists($.response.generateVideoResponse.raiMediaFilteredCount ? (@ > 0)))",
      "class": "content_refused", "code": "content_refused"
    },
    {"when": "$.done == true && !exists($.response.generateVideoResponse.generatedSamples[*].video.uri)", "class": "no_output"}
  ],
  "errors": [
    {"match": "safety|sensitive|responsible ai|content polic|violat", "class": "content_refused", "code": "content_refused"},
    {"match": "DEADLINE_EXCEEDED|timed? ?out", "class": "provider_timeout", "code": "timed_out"},
    {"match": "RESOURCE_EXHAUSTED|quota|rate limit|overloaded", "class": "provider_busy", "code": "provider_busy"},
    {"match": "INVALID_ARGUMENT|invalid", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 172800,
  "deadline_s": 21600,
  "retry_span_s": 86400,
  "quota": {"provider": 5, "model": 5}
}
$profile$::jsonb);
