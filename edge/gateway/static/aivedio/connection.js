/** One connection to the event stream: opened by fetch, read to its end, watched for silence. */

import { EventStreamParser } from './event_stream.js';
import { Ended, mark, since } from './time.js';

export class Connection {
  /** Set by whoever reads it, once the stream has said where it goes on from. */
  ready = false;

  /** Whether the server said that its database is away: then it may miss what happens. */
  blind = false;

  /** Whether a snapshot is being awaited for it. */
  repairing = false;

  /** How often it was found behind a snapshot. */
  lagged = 0;

  #abort = new AbortController();
  #began = mark();
  #lastByte = mark();
  #suspectSince = null;
  #closed = false;
  #timing;

  constructor(timing) {
    this.#timing = timing;
  }

  get signal() {
    return this.#abort.signal;
  }

  get open() {
    return !this.#closed && !this.signal.aborted;
  }

  get age() {
    return since(this.#began);
  }

  get silence() {
    return since(this.#lastByte);
  }

  /** Ends it, from whatever it does. */
  end(why, failure = false) {
    this.#abort.abort(new Ended(why, failure));
  }

  /** Gives it a shorter time to show life: a ping is due every 25 seconds. */
  suspect() {
    this.#suspectSince = mark();
  }

  /** Ends it if it is dead. */
  check() {
    const { silence, suspect, request } = this.#timing;
    const suspicious = this.#suspectSince !== null && since(this.#suspectSince) > suspect;
    if (!this.ready) {
      if (this.age > request) this.end('timeout', true);
    } else if (this.silence > silence || (suspicious && this.silence > suspect)) {
      this.end('silence', true);
    }
  }

  /**
   * Opens the stream after `cursor` and hands its events to `take(events, retry)`, chunk by
   * chunk. It always throws: `Ended`, an `ApiProblem`, or what the network had to say.
   */
  async follow(api, cursor, life, take) {
    life.throwIfAborted();
    const stop = () => this.#abort.abort(life.reason);
    life.addEventListener('abort', stop, { once: true });
    const opening = setTimeout(() => this.check(), this.#timing.request + 1);
    try {
      const response = await api.send('/events', {
        purpose: 'stream',
        headers: { accept: 'text/event-stream', 'last-event-id': String(cursor) },
        signal: this.signal,
      });
      if (response.status === 204) throw new Ended('stopped');
      if (!/^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')) {
        throw new TypeError('the answer is not an event stream');
      }
      await this.#read(response.body.getReader(), take);
      throw new Ended('drained', !this.ready);
    } catch (error) {
      throw this.signal.aborted ? this.signal.reason : error;
    } finally {
      clearTimeout(opening);
      life.removeEventListener('abort', stop);
      this.#closed = true;
      this.end('done');
    }
  }

  async #read(reader, take) {
    const parser = new EventStreamParser();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.signal.aborted) return;
        this.#lastByte = mark();
        take(parser.push(value), parser);
      }
    } finally {
      reader.cancel().catch(() => {});
    }
  }
}
