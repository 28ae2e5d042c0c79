/** Characters of one line or one event; ours have a few hundred, a runaway server has no end. */
const FRAME_LIMIT = 262_144;

/**
 * Splits the bytes of an event stream into events, by the rules of the HTML standard.
 *
 * Chunks may end anywhere, inside a character or between CR and LF too. What stands after the
 * last blank line is never an event: a connection that breaks in mid-frame loses nothing but
 * what the server will send again.
 */
export class EventStreamParser {
  #decoder = new TextDecoder();
  #rest = '';
  #afterCr = false;
  #type = '';
  #data = null;

  /** The id that a reconnect would send. */
  lastEventId = '';

  /** The wait that the server asked for, in milliseconds, or null. */
  retry = null;

  /** Takes the next bytes and returns the events that they complete. */
  push(bytes) {
    const events = [];
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return events;
    if (this.#afterCr && text[0] === '\n') text = text.slice(1);
    this.#afterCr = text === '' ? false : text.endsWith('\r');

    const lines = (this.#rest + text).split(/\r\n|\r|\n/);
    this.#rest = lines.pop();
    for (const line of lines) this.#line(line, events);
    if (this.#rest.length > FRAME_LIMIT || (this.#data?.length ?? 0) > FRAME_LIMIT) {
      throw new RangeError('an event of the stream is too large');
    }
    return events;
  }

  #line(line, events) {
    if (line === '') return this.#dispatch(events);
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);

    if (field === 'data') this.#data = this.#data === null ? value : `${this.#data}\n${value}`;
    else if (field === 'event') this.#type = value;
    else if (field === 'id' && !value.includes('\0')) this.lastEventId = value;
    else if (field === 'retry' && /^[0-9]+$/.test(value)) this.retry = Number(value);
    return undefined;
  }

  #dispatch(events) {
    if (this.#data !== null) {
      events.push({ type: this.#type || 'message', data: this.#data, id: this.lastEventId });
    }
    this.#type = '';
    this.#data = null;
  }
}
