/** Why the feed itself ended a connection. Only a `failure` counts against the server. */
export class Ended extends Error {
  constructor(why, failure) {
    super(why);
    this.why = why;
    this.failure = failure;
  }
}

/** Two clocks, since one of them may stand still in sleep and the other may be set back. */
export const mark = () => ({ wall: Date.now(), steady: performance.now() });
export const since = (then) => Math.max(Date.now() - then.wall, performance.now() - then.steady);

/** Waits `ms`, or less if `signal` aborts; never rejects. */
export function sleep(ms, signal) {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}

/** Runs `work(signal)`; the signal aborts with `outer`, or after `ms`. */
export async function within(ms, outer, work) {
  const inner = new AbortController();
  const stop = () => inner.abort(outer.reason);
  if (outer.aborted) stop();
  outer.addEventListener('abort', stop, { once: true });
  const timer = setTimeout(() => inner.abort(new Ended('timeout', true)), ms);
  try {
    return await work(inner.signal);
  } finally {
    clearTimeout(timer);
    outer.removeEventListener('abort', stop);
  }
}
