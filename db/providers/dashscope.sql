/*
 * Provider · Alibaba DashScope, Wan video
 *
 * Facts are from Model Studio's documentation and the DashScope SDK. A task's model is DashScope's, such as
 * wan2.5-t2v-preview; its input is the request without the model: {"input": {…}, "parameters": {…}}. What the facts leave
 * open is decided the careful way:
 *
 *   - no callback per job: polls tell everything, 20 a second for an account
 *   - UNKNOWN means "no such task", and comes with HTTP 200: it is treated as a 404, never as a state
 *   - only a job that waits can be canceled; DashScope refuses later with UnsupportedOperation, which ends our trying
 *   - a task of several parts is SUCCEEDED if one part is: what it lists is what there is
 *   - SUSPENDED is in the SDK alone, and is taken for running
 *   - times in answers name no zone: none is read
 *   - task and output live 24 hours; there is no progress
 */
select aivedio.define_provider('dashscope', $profile$
{
  "base_url": "https://dashscope.aliyuncs.com/api/v1",
  "auth": {"kind": "bearer", "header": "authorization", "prefix": "Bearer ", "secret": "env:DASHSCOPE_API_KEY"},
  "submit": {
    "method": "POST",
    "path": "/services/aigc/video-generation/video-synthesis",
    "headers": {"content-type": "application/json", "x-dashscope-async": "enable"},
    "body": {"...": "{input}", "model": "{model}"},
    "accepted": [200],
    "provider_task_id": "$.output.task_id",
    "error_message": "$.message",
    "error_code": "$.code",
    "timeout_s": 30
  },
  "poll": {
    "method": "GET",
    "path": "/tasks/{provider_task_id}",
    "answers": [{"when": "$.output.task_status == \"UNKNOWN\"", "means": "not_found"}],
    "timeout_s": 15,
    "interval_s": {"submitted": [3, 5], "queued": [10, 30], "running": [10, 20]},
    "cap_s": 300,
    "not_found_grace_s": 60
  },
  "cancel": {
    "method": "POST",
    "path": "/tasks/{provider_task_id}/cancel",
    "answers": [{"when": "$.code == \"UnsupportedOperation\"", "means": "refused"}],
    "confirmed": [200],
    "timeout_s": 15
  },
  "webhook": null,
  "fields": {
    "provider_task_id": "$.output.task_id",
    "status": "$.output.task_status",
    "error_code": "$.output.code",
    "error_message": "$.output.message",
    "outputs": "$.output.video_url"
  },
  "words": {
    "poll": {
      "PENDING": "queued", "RUNNING": "running", "SUSPENDED": "running", "SUCCEEDED": "succeeded",
      "FAILED": "failed", "CANCELED": "canceled"
    }
  },
  "success_needs_output": true,
  "errors": [
    {"match": "DataInspection|inappropriate|sensitive|content polic", "class": "content_refused", "code": "content_refused"},
    {"match": "timed? ?out", "class": "provider_timeout", "code": "timed_out"},
    {"match": "throttl|rate limit|quota|arrear", "class": "provider_busy", "code": "provider_busy"},
    {"match": "InvalidParameter|invalid", "class": "invalid_input", "code": "provider_rejected"}
  ],
  "output_lifetime_s": 86400,
  "deadline_s": 43200,
  "retry_span_s": 3600,
  "quota": {"provider": 20, "model": 20}
}
$profile$::jsonb);
