/** What the server knows and does. Every failure is a Problem with the server's own words. */

export class Problem extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(15_000), ...options });
  } catch {
    throw new Problem(0, 'unreachable', 'The server gives no answer.');
  }
  let body = null;
  try {
    body = await answer.json();
  } catch {
    // A proxy's own page, perhaps; the status says enough.
  }
  if (answer.ok && body !== null) return body;
  throw new Problem(answer.status, body?.code ?? 'unknown', body?.detail ?? `The server answered ${answer.status}.`);
}

export const look = (path) => ask(`api/${path}`);

export const act = (name, body) =>
  ask(`api/actions/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
