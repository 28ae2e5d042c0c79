/** An answer of the API that is not a success. Branch on `status` and `code`, show `detail`. */
export class ApiProblem extends Error {
  constructor(status, { title, code, detail, trace_id: traceId } = {}, retryAfter = null) {
    super(detail || title || `The server answered ${status}.`);
    this.name = 'ApiProblem';
    this.status = status;
    this.code = code ?? null;
    this.detail = this.message;
    this.traceId = traceId ?? null;
    this.retryAfter = retryAfter;
  }

  /** Makes one of its own members, which is what another tab can send. */
  static from({ status, detail, code, traceId, retryAfter }) {
    return new ApiProblem(status, { detail, code, trace_id: traceId }, retryAfter);
  }

  static async of(response) {
    let body;
    try {
      if (/json/.test(response.headers.get('content-type') ?? '')) body = await response.json();
    } catch {
      // An answer that cannot be read is still an answer with a status.
    }
    const isObject = typeof body === 'object' && body !== null;
    return new ApiProblem(response.status, isObject ? body : {}, retryAfter(response));
  }
}

function retryAfter(response) {
  const value = response.headers.get('retry-after');
  if (value === null) return null;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}
