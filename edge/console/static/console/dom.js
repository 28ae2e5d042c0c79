/** Small helpers: elements, times, numbers. */

export const byId = (id) => document.getElementById(id);

/** Make an element. Properties that start with "on" are listeners, null and false leave one out. */
export function h(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name || 'div');
  if (classes.length > 0) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'data') Object.assign(element.dataset, value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replace what an element shows, but only when it would show something else. */
export function show(element, key, make) {
  const text = JSON.stringify(key);
  if (element.shown === text) return;
  element.shown = text;
  element.replaceChildren(...[make()].flat());
}

const whole = new Intl.NumberFormat('en');
export const number = (value) => whole.format(value);
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

/** A span of seconds, in the two units that matter. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const size = Math.abs(seconds);
  if (size < 0.001) return '0 s';
  if (size < 1) return `${Math.round(seconds * 1000)} ms`;
  if (size < 10 && !Number.isInteger(seconds)) return `${seconds.toFixed(1)} s`;
  if (size < 120) return `${Math.round(seconds)} s`;
  if (size < 7200) return `${Math.round(seconds / 60)} min`;
  if (size < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** A moment, told as how long ago it is, or how soon; tick() keeps it true. */
export function ago(text) {
  if (!text) return h('span', {}, '–');
  const element = h('time.ago', { datetime: text, title: new Date(text).toLocaleString() });
  tellAgo(element);
  return element;
}

function tellAgo(element) {
  const seconds = (now() - Date.parse(element.dateTime)) / 1000;
  const text = seconds >= 1 ? `${span(Math.floor(seconds))} ago` : seconds > -1 ? 'now' : `in ${span(Math.ceil(-seconds))}`;
  if (element.textContent !== text) element.textContent = text;
}

export function tick() {
  for (const element of document.querySelectorAll('time.ago')) tellAgo(element);
}

let ahead = 0;
/** The database's clock, as far as it is known: a browser's own may be off. */
export const now = () => Date.now() + ahead;
export function clockIs(text) {
  ahead = Date.parse(text) - Date.now();
}

const two = (value) => String(value).padStart(2, '0');
const timeOf = (at) => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;

export function clock(text) {
  const at = new Date(text);
  return `${timeOf(at)}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}

/** A moment in a fact: the time alone where it is of today. */
function moment(text) {
  const at = new Date(text);
  const today = at.toDateString() === new Date(now()).toDateString();
  return today ? timeOf(at) : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${timeOf(at)}`;
}

export const short = (id) => h('code', { title: id }, id.length > 13 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id);
export const taskLink = (id) => h('a.ref', { href: `#/task/${id}` }, 'job ', short(id));

/** Names with values, as small labels; nested values become text. */
export function facts(values, leaveOut = []) {
  const shown = Object.entries(values ?? {}).filter(
    ([name, value]) => value !== null && value !== undefined && value !== '' && !leaveOut.includes(name),
  );
  if (shown.length === 0) return null;
  const label = (name) => name.replace(/_(s|at)$/, '').replaceAll('_', ' ');
  return h('dl.facts', {}, shown.map(([name, value]) => h('div', {}, h('dt', {}, label(name)), h('dd', {}, plain(name, value)))));
}

function plain(name, value) {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (name.endsWith('_s') && typeof value === 'number') return span(value);
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)) return moment(value);
  if (Array.isArray(value)) return value.map((each) => plain(name, each)).join(', ') || 'none';
  if (typeof value === 'object') return Object.entries(value).map(([key, each]) => `${key.replaceAll('_', ' ')} ${plain(key, each)}`).join(', ');
  return String(value);
}
