/**
 * One connection for all tabs of a browser.
 *
 * Whoever holds the lock leads: it alone talks to the server, and tells the others what it
 * learns. They wait for the lock, so that one of them goes on at the same cursor the moment the
 * leader closes. A leader that falls silent without closing (a tab that hangs or is frozen keeps
 * its lock) is asked, and robbed of it if it does not answer. A leader's messages are numbered: who misses one asks for
 * everything again.
 */

import { newKey } from './api.js';
import { isHidden, mark, since } from './time.js';

/** Whether tabs can share here: plain http pages, for one, have no locks. */
export function canShare() {
  return Boolean(globalThis.navigator?.locks && globalThis.BroadcastChannel);
}

export class Tabs {
  #id = newKey();
  #name;
  #timing;
  #hooks;
  #channel = null;

  #leading = false;
  #term = 0; //        of the newest leader; a leader with a lower one does not know yet
  #leader = null;
  #number = 0; //      of the leader's last message
  #heard = mark();
  #ticked = mark(); //  when this tab's own timer last ran
  #askTimer = null; //  runs while an answer is awaited
  #leaderHidden = false;
  #audience = false; // whether anybody has asked; nobody else is told anything

  #rob = false;
  #waiting = null; //  aborts the wait for the lock
  #reign = null; //    aborts being the leader

  /**
   * `lead(signal)` does the leader's work until the signal aborts; `whole()` says all there is
   * to say; `take(news)` gets what a leader said; `refresh()` is asked for by another tab.
   */
  constructor(name, timing, hooks) {
    this.#name = name;
    this.#timing = timing;
    this.#hooks = hooks;
  }

  get leading() {
    return this.#leading;
  }

  /** How long the leader has said nothing. */
  get silence() {
    return since(this.#heard);
  }

  /** Takes part until `signal` aborts. */
  async run(signal) {
    if (signal.aborted) return;
    try {
      this.#channel = new BroadcastChannel(this.#name);
    } catch {
      await this.#lead(signal);
      return;
    }
    this.#channel.onmessage = ({ data }) => this.#message(data);
    const end = () => {
      this.#answered();
      this.#waiting?.abort();
      this.#reign?.abort();
      this.#channel.close();
      this.#channel = null;
    };
    signal.addEventListener('abort', end, { once: true });
    this.#heard = mark();
    this.#ticked = mark();
    this.#ask();
    while (!signal.aborted) await this.#candidate(signal);
  }

  /** As the leader, tells the others. */
  tell(news) {
    if (!this.#leading || !this.#audience) return;
    this.#number += 1;
    this.#send('news', { number: this.#number, hidden: isHidden(), news });
  }

  /** Asks the leader to connect again now. */
  refresh() {
    if (this.#leading) this.#hooks.refresh();
    else this.#send('refresh');
  }

  /** Looks after a leader that is silent, or hidden while this tab is not; called now and then. */
  watch() {
    this.#ticked = mark();
    if (this.#leading || this.#channel === null) return;
    if (this.silence > this.#timing.suspect) this.#ask();
    else if (this.#leaderHidden && !isHidden()) this.#send('want');
  }

  /** Lets go of the lead, since this tab is about to be frozen. */
  yield() {
    this.#reign?.abort();
  }

  // ---- the lock ------------------------------------------------------------------------------

  /** Waits for the lock once, and leads once. */
  async #candidate(signal) {
    const waiting = new AbortController();
    this.#waiting = waiting;
    const options = this.#rob ? { steal: true } : { signal: waiting.signal };
    this.#rob = false;
    let reigning = null;
    const reign = () => {
      reigning = signal.aborted ? Promise.resolve() : this.#lead(signal);
      return reigning;
    };
    try {
      await navigator.locks.request(this.#name, options, reign);
    } catch (error) {
      this.#reign?.abort();
      if (error.name !== 'AbortError') {
        // No locks after all, as in a sandboxed frame: everyone for themselves.
        await this.#lead(signal);
      }
    }
    await reigning;
  }

  async #lead(signal) {
    const reign = new AbortController();
    const end = () => reign.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    this.#reign = reign;
    this.#leading = true;
    this.#term = Math.max(this.#term + 1, Date.now());
    this.#leader = this.#id;
    this.#number = 0;
    this.#answered();
    if (this.#audience) this.#sendWhole();
    try {
      await this.#hooks.lead(reign.signal);
    } finally {
      signal.removeEventListener('abort', end);
      this.#reign = null;
      this.#leading = false;
      this.#leader = null;
      this.#heard = mark();
      if (!signal.aborted) this.#ask();
    }
  }

  #steal() {
    if (this.#leading) return;
    this.#rob = true;
    this.#waiting?.abort();
  }

  // ---- the channel ---------------------------------------------------------------------------

  #send(kind, more = {}) {
    this.#channel?.postMessage({ kind, from: this.#id, term: this.#term, ...more });
  }

  #sendWhole() {
    const news = this.#hooks.whole(); // may itself tell something, with a number
    this.#send('whole', { number: this.#number, hidden: isHidden(), news });
  }

  /** Asks the leader for everything; one that does not answer in time is taken for frozen. */
  #ask() {
    if (this.#channel === null || this.#askTimer !== null) return;
    this.#send('ask');
    this.#askTimer = setTimeout(() => {
      this.#askTimer = null;
      this.#steal();
    }, this.#timing.ask);
  }

  #answer() {
    // Chromium hands messages to a frozen tab, but neither time nor bytes: it must not pretend.
    if (since(this.#ticked) > this.#timing.suspect) this.#reign.abort();
    else this.#sendWhole();
  }

  #answered() {
    clearTimeout(this.#askTimer);
    this.#askTimer = null;
  }

  #message({ kind, from, to, term, number, hidden, news }) {
    if (kind === 'ask' || kind === 'want' || kind === 'refresh') {
      this.#audience = true;
      if (!this.#leading) return;
      if (kind === 'ask') this.#answer();
      else if (kind === 'refresh') this.#hooks.refresh();
      else if (isHidden()) this.#send('yours', { to: from });
      return;
    }
    if (kind === 'yours') {
      if (to === this.#id) this.#steal();
      return;
    }
    if (term < this.#term) return;
    // Robbed in its sleep, and not told yet: nothing may be done before the connection is cut.
    if (this.#leading) this.#reign.abort();
    const next = kind === 'whole' || (from === this.#leader && number === this.#number + 1);
    this.#term = term;
    this.#leaderHidden = hidden;
    this.#audience = true;
    if (!next) {
      if (from === this.#leader && number <= this.#number) return;
      this.#ask();
      return;
    }
    this.#leader = from;
    this.#number = number;
    this.#heard = mark();
    this.#answered();
    this.#hooks.take(news);
  }
}
