/** The gateway's HTTP, as far as one project goes: tokens, deadlines, problems, repeats. */

import { ApiProblem } from './problem.js';
import { orAborted, sleep, within } from './time.js';
import { drawn } from './timing.js';

const COMMAND_TRIES = 3;
const LONGEST_COMMAND_WAIT = 5_000;

export class Api {
  #path;
  #token;
  #credentials;
  #timing;
  #renew = false;

  constructor(path, { token, credentials }, timing) {
    this.#path = path;
    this.#token = token;
    this.#credentials = credentials;
    this.#timing = timing;
  }

  /** The next token must be a new one: the server said that the last one expires. */
  renew() {
    this.#renew = true;
  }

  /** Sends a request and returns the answer of a success; a refused token is renewed once. */
  async send(path, { purpose = 'api', headers, signal, ...request } = {}) {
    for (let renew = false; ; renew = true) {
      const token = await this.#current({ purpose, renew: renew || this.#renew }, signal);
      const response = await fetch(this.#path + path, {
        ...request,
        signal,
        credentials: this.#credentials,
        cache: 'no-store',
        headers: { accept: 'application/json', ...headers, ...authorization(token) },
      });
      if (response.ok) return response;
      const problem = await ApiProblem.of(response);
      if (response.status !== 401 || renew || typeof this.#token !== 'function') throw problem;
    }
  }

  /** Sends a request and returns what the answer says. */
  json(path, { signal, ...request }) {
    return within(this.#timing.request, signal, async (inner) => {
      const response = await this.send(path, { signal: inner, ...request });
      return response.json();
    });
  }

  /**
   * Sends a command, and again while it is not known whether it arrived. A repeat is harmless:
   * by keys and versions the second call gets the first one's answer.
   */
  async command(path, body, headers, signal) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.json(path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
          signal,
        });
      } catch (error) {
        const passing = !(error instanceof ApiProblem) || [502, 503, 504].includes(error.status);
        if (signal.aborted || !passing || tries === COMMAND_TRIES) throw error;
        const wait = error.retryAfter ?? drawn(tries, this.#timing);
        await sleep(Math.min(wait, LONGEST_COMMAND_WAIT), signal);
      }
    }
  }

  async #current(ask, signal) {
    if (typeof this.#token !== 'function') return this.#token;
    const token = await orAborted(Promise.resolve(this.#token(ask)), signal);
    this.#renew = false;
    return token;
  }
}

/** A bare token is a bearer token; a one-time stream token comes as "Stream …". */
function authorization(token) {
  if (!token) return {};
  return { authorization: token.includes(' ') ? token : `Bearer ${token}` };
}

/** Makes a key that nobody else makes. Pages without a secure context have no randomUUID. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
