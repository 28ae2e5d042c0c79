/*
 * Provider · Runway
 *
 * Facts are from Runway's documentation and SDKs. A task's model is the endpoint and Runway's model, such as
 * image_to_video/gen4_turbo; its input is the request without the model. What the facts leave open is decided the
 * careful way:
 *
 *   - there are no webhooks: polls tell everything, at most one each five seconds for a job
 *   - THROTTLED means that the account runs as many jobs as it may: the job waits, it has not failed
 *   - DELETE cancels a job that waits or runs, and destroys a finished one with its output. It is sent only when a poll
 *     has just said that the job is not finished, and nobody promises that generating stops
 *   - a canceled job cannot be fetched again: a 404 after our own cancel means canceled, any other 404 opens a case
 *   - 429 to a submission is the daily cap: tried a few times, then the task fails as busy
 *   - createdAt is the only time in an answer and says nothing about the latest change: no time is read
 *   - rates of polling beyond that are not said: ten a second. Outputs live 24 to 48 hours: 24
 */
select aivedio.define_provider('runway', $profile$
{
  "base_url": "https://api.dev.runwayml.com",
  "auth": {"kind": "bearer", "header": "authorization", "prefix": "Bearer ", "secret": "env:RUNWAYML_API_SECRET"},
  "values": {
    "endpoint": {"from": "model", "match": "^((?:text|image|video)_to_video|character_performance|video_upscale)/", "default": "text_to_video"},
    "name": {"from": "model", "match": "([^/]+)$"}
  },
  "submit": {
    "method": "POST",
    "path": "/v1/{endpoint}",
    "headers": {"content-type": "application/json", "x-runway-version": "2024-11-06"},
    "body": {"...": "{input}", "model": "{name}"},
    "accepted": [200, 201],
    "provider_task_id": "$.id",
    "error_message": "$.error",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/v1/tasks/{provider_task_id}",
    "headers": {"x-runway-version": "2024-11-06"},
    "timeout_s": 15,
    "interval_s": {"submitted": [6.5, 8], "queued": [13, 30], "running": [6.5, 15]},
    "cap_s": 300,
    "not_found_grace_s": 60,
    "gone_after_cancel": true
  },
  "cancel": {
    "method": "DELETE",
    "path": "/v1/tasks/{provider_task_id}",
    "headers": {"x-runway-version": "2024-11-06"},
    "only_when": ["queued", "running"],
    "confirmed": [200, 202, 204],
    "timeout_s": 15
  },
  "webhook": null,
  "fields": {
    "provider_task_id": "$.id",
    "status": "$.status",
    "progress": "$.progress",
    "progress_scale": 1,
    "error_code": "$.failureCode",
    "error_message": "$.failure",
    "outputs": "$.output"
  },
  "words": {
    "poll": {
      "PENDING": "queued", "THROTTLED": "queued", "RUNNING": "running", "SUCCEEDED": "succeeded",
      "FAILED": "failed", "CANCELLED": "canceled"
    }
  },
  "success_needs_output": true,
  "errors": [
    {"match": "safety|moderation|content polic", "class": "content_refused", "code": "content_refused"},
    {"match": "timed? ?out", "class": "provider_timeout", "code": "timed_out"},
    {"match": "rate limit|throttl|too many|daily", "class": "provider_busy", "code": "provider_busy"},
    {"match": "invalid|validation", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 86400,
  "deadline_s": 21600,
  "retry_span_s": 3600,
  "quota": {"provider": 10, "model": 10}
}
$profile$::jsonb);
