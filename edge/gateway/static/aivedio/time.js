/** Two clocks, since one of them may stand still in sleep and the other may be set back. */
export const mark = () => ({ wall: Date.now(), steady: performance.now() });
export const since = (then) => Math.max(Date.now() - then.wall, performance.now() - then.steady);

/** Why the feed itself ended something. Only a `failure` counts against the server. */
export class Ended extends Error {
  constructor(why, failure = false) {
    super(why);
    this.why = why;
    this.failure = failure;
  }
}

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

/** Settles as `promise` does, or rejects once `signal` aborts. */
export function orAborted(promise, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
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

/** Whether nobody sees the page. Outside of pages nothing is hidden. */
export function isHidden() {
  return globalThis.document?.visibilityState === 'hidden';
}
