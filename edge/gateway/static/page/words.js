/** Times as people say them. */

const UNITS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
];

/** A length of time in at most two units: "42 s", "3 min 5 s", "2 h 10 min". */
export function duration(ms) {
  let seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds === 0) return '0 s';
  const parts = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(seconds / size);
    if (count > 0 && parts.length < 2) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
    seconds -= count * size;
  }
  return parts.join(' ');
}

/** How long ago that was: "just now", "42 s ago", "3 min ago". */
export function ago(then, now) {
  const ms = now - then;
  if (ms < 5_000) return 'just now';
  return `${duration(ms).split(/(?<=[a-z]) /)[0]} ago`;
}

/** "1 job", "3 jobs". */
export function count(number, noun) {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}
