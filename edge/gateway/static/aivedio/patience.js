/** How a connection's end is judged: how long to wait, how long at least, what to call it. */

import { ApiProblem } from './problem.js';
import { Ended, isHidden } from './time.js';
import { drawn } from './timing.js';

const FAILURES_UNTIL_INTERRUPTED = 3;
const VERDICTS = { 401: 'unauthorized', 403: 'forbidden', 404: 'forbidden' };

export class Patience {
  /** Failed tries in a row. */
  failures = 0;

  /** The last refusal, until a try succeeds. */
  problem = null;

  /** 'unauthorized' or 'forbidden', until a try succeeds. */
  verdict = null;

  /** The wait that the server asked for when it closes a connection, in milliseconds. */
  retry = null;

  #timing;

  constructor(timing) {
    this.#timing = timing;
  }

  get interrupted() {
    return this.failures >= FAILURES_UNTIL_INTERRUPTED;
  }

  succeeded() {
    this.problem = null;
    this.verdict = null;
  }

  note(error) {
    if (error instanceof ApiProblem) this.problem = error;
  }

  /** Says how long to wait after `error` ended `connection`, or its snapshot before that. */
  after(error, connection) {
    const stable = connection?.ready && connection.age >= this.#timing.stable;
    if (stable) this.failures = 0;
    if (error instanceof Ended && !error.failure) return this.#afterOurs(error.why, connection);

    this.failures += 1;
    this.problem = error instanceof ApiProblem ? error : null;
    this.verdict = VERDICTS[this.problem?.status] ?? null;
    const wait = this.#afterFailure();
    if (isHidden() && this.interrupted) wait.ms = Math.max(wait.ms, this.#timing.hiddenFloor);
    return wait;
  }

  #afterOurs(why, connection) {
    const { backoff, nudge, stable } = this.#timing;
    if (why === 'refresh') {
      this.failures = 0;
      return { ms: 0, floor: 0 };
    }
    if (why === 'drained') {
      if (this.failures > 0 || connection.age < stable) this.failures += 1;
      const asked = this.retry ?? Math.random() * backoff;
      return { ms: Math.max(asked, drawn(this.failures - 1, this.#timing)), floor: 0 };
    }
    // A renewal that is answered with the next renewal must not spin.
    return { ms: connection.age < nudge ? nudge : 0, floor: 0 };
  }

  #afterFailure() {
    const { backoff, deniedWait } = this.#timing;
    const floor = this.problem?.retryAfter ?? null;
    if (floor !== null) return { ms: floor + Math.random() * Math.max(floor, backoff), floor };
    if (this.verdict !== null) return { ms: deniedWait * (0.5 + Math.random()), floor: 0 };
    return { ms: drawn(this.failures, this.#timing), floor: 0 };
  }
}
