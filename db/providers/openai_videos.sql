/*
 * Provider · a videos API that is shaped like OpenAI's
 *
 * OpenAI has shut its own videos API down; gateways copy it. The base URL leads nowhere until an override names the
 * gateway: {"base_url": "https://gateway.example/v1"}. Facts are from OpenAI's API description and SDKs. A task's model is the
 * gateway's; its input is the request without the model. What the facts leave open is decided the careful way:
 *
 *   - the request takes no callback URL: where the gateway has an endpoint for the project, register
 *     <callback base>/callbacks/openai_videos and set its secret
 *   - callbacks carry the job's id alone: each is a hint. The header's id names an event, not the body's
 *   - DELETE takes finished jobs only and destroys them: there is no cancel
 *   - the output is fetched from the API itself, with its key, and lives an hour at most
 *   - polls are ten seconds apart; how many is not said: five a second
 */
select aivedio.define_provider('openai_videos', $profile$
{
  "base_url": "https://openai-videos.invalid/v1",
  "auth": {"kind": "bearer", "header": "authorization", "prefix": "Bearer ", "secret": "env:OPENAI_VIDEOS_API_KEY"},
  "submit": {
    "method": "POST",
    "path": "/videos",
    "headers": {"content-type": "application/json"},
    "body": {"...": "{input}", "model": "{model}"},
    "accepted": [200, 201],
    "provider_task_id": "$.id",
    "error_message": "$.error.message",
    "error_code": "$.error.code",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/videos/{provider_task_id}",
    "timeout_s": 15,
    "interval_s": {"submitted": [12.5, 15], "queued": [12.5, 30], "running": [12.5, 20]},
    "cap_s": 300,
    "not_found_grace_s": 60
  },
  "cancel": null,
  "webhook": {
    "scheme": "standard-webhooks-v1",
    "secret_format": "by_prefix",
    "secrets": [
      {"ref": "env:OPENAI_VIDEOS_WEBHOOK_SECRET", "version": "current"},
      {"ref": "env:OPENAI_VIDEOS_WEBHOOK_SECRET_PREVIOUS", "version": "previous"}
    ],
    "tolerance_s": 300,
    "event_id_header": "webhook-id",
    "signed": true,
    "thin": true,
    "required": ["$.type", "$.data.id"],
    "max_body": 262144,
    "content_types": ["application/json"],
    "keep_headers": ["webhook-id", "webhook-timestamp"],
    "acknowledge": {"status": 200, "body": null},
    "fields": {
      "provider_task_id": "$.data.id",
      "event_type": "$.type",
      "status": "$.type",
      "occurred_at": ["$.created_at"],
      "outputs": null
    }
  },
  "fields": {
    "provider_task_id": "$.id",
    "status": "$.status",
    "progress": "$.progress",
    "progress_scale": 100,
    "occurred_at": ["$.completed_at"],
    "error_code": "$.error.code",
    "error_message": "$.error.message",
    "outputs": [{"path": "$.id", "url": "{base_url}/videos/{}/content"}]
  },
  "words": {
    "webhook": {"video.completed": "succeeded", "video.failed": "failed"},
    "poll": {"queued": "queued", "in_progress": "running", "completed": "succeeded", "failed": "failed"}
  },
  "success_needs_output": true,
  "errors": [
    {"match": "moderation|content.?polic|safety", "class": "content_refused", "code": "content_refused"},
    {"match": "timed? ?out", "class": "provider_timeout", "code": "timed_out"},
    {"match": "rate.?limit|quota|overloaded|too many", "class": "provider_busy", "code": "provider_busy"},
    {"match": "invalid", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 3600,
  "deadline_s": 21600,
  "retry_span_s": 259200,
  "quota": {"provider": 5, "model": 5}
}
$profile$::jsonb);
