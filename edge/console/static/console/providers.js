/** Providers: how they are now, and how they behaved today. */

import { ask } from './dialog.js';
import { ago, byId, count, h, now, number, show, span } from './dom.js';
import { words } from './words.js';

const percent = (share) => (share === null || share === undefined ? '–' : `${Math.round(share * 100)} %`);

/** A provider that something is known of: the others take one line together. */
const inUse = (provider, today) =>
  provider.scheduled > 0 || provider.coverage !== null || provider.circuits.length > 0 || provider.last_end_at !== null || today.length > 0;

/** `today` is null where its report takes too long. */
export function providers(rows, today, mayAct) {
  const section = byId('providers');
  section.hidden = false;
  const of = (name) => (today ?? []).filter((report) => report.provider === name);
  const used = rows.filter((provider) => inUse(provider, of(provider.name)));
  const idle = rows.filter((provider) => !used.includes(provider)).map(({ name }) => name);
  show(section, [rows, today, mayAct], () => [
    h('div.heading', {}, h('h2', {}, 'Providers'), h('p.faint', {}, used.length === 0 ? 'none has been used yet' : today === null ? 'now; today’s report takes too long for a page: convergence_report tells it' : 'now, and today since midnight UTC')),
    used.length > 0 && h('div.scroll', { tabindex: 0, role: 'group', 'aria-label': 'Providers' }, h('table.providers', {},
      h('thead', {}, h('tr', {}, ['Provider', 'Ends told by callbacks', 'Callback delay', 'Polls', 'Quota', 'Circuit'].map((text) => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, used.map((provider) => lines(provider, of(provider.name), mayAct))))),
    idle.length > 0 && h('p.faint.idle', {}, `Not in use: ${idle.join(', ')}.`),
  ].filter(Boolean));
}

function lines(provider, today, mayAct) {
  return [
    h('tr.provider', {},
      h('th', { scope: 'row' }, provider.name,
        h('span.small', {}, [provider.webhook && 'callbacks', provider.poll && 'polls', provider.overridden && 'overridden here'].filter(Boolean).join(' · '))),
      h('td', {}, provider.coverage === null ? 'not measured yet' : [meter(provider.coverage), h('span.small', {}, `of ${number(provider.ends)} ends, `, ago(provider.measured_at))]),
      h('td', {}, provider.delay_p50_s === null ? '–' : [span(provider.delay_p50_s), h('span.small', {}, `p95 ${span(provider.delay_p95_s)}`)]),
      h('td', {}, `${number(provider.due)} due`, h('span.small', {}, `${number(provider.scheduled)} scheduled`)),
      h('td', {}, quota(provider.quotas)),
      h('td', {}, circuit(provider, mayAct))),
    today.map((report) => h('tr.model', {}, h('td', { colspan: 6 },
      h('code', {}, report.model), ' ',
      [
        `${number(report.ended)} of ${number(report.attempts)} ended`,
        report.ended > 0 && `first told by callback ${number(report.callback_first)}, by poll ${number(report.poll_first)}`,
        report.duration_p50 !== null && `took ${span(report.duration_p50)}, p95 ${span(report.duration_p95)}`,
        report.lag_p50 !== null && `heard ${span(report.lag_p50)} late, p95 ${span(report.lag_p95)}`,
        report.polls > 0 && `${count(report.polls, 'poll')}, ${percent(report.polls_unchanged)} told nothing new`,
        report.polls_throttled > 0 && `${percent(report.polls_throttled)} throttled`,
        report.callbacks_repeated > 0 && count(report.callbacks_repeated, 'repeated callback'),
        report.out_of_order > 0 && `${number(report.out_of_order)} out of order`,
        report.conflicts > 0 && count(report.conflicts, 'conflict'),
        report.stale_attempts > 0 && `${number(report.stale_attempts)} of old attempts`,
        report.unknown_words > 0 && count(report.unknown_words, 'unknown word'),
      ].filter(Boolean).map((text) => h('span.bit', {}, text))))),
  ];
}

function meter(share) {
  const fill = h('span.fill');
  fill.style.setProperty('--part', share);
  return h('span.meter', { data: { tone: share < 0.8 ? 'warn' : 'good' } }, h('span.track', { 'aria-hidden': 'true' }, fill), percent(share));
}

function quota(buckets) {
  const blocked = buckets.filter((bucket) => bucket.blocked_until !== null);
  const slowed = buckets.filter((bucket) => bucket.rate < bucket.full_rate);
  const own = buckets.find((bucket) => bucket.level === 'provider');
  if (blocked.length > 0) return h('span.state', { data: { tone: 'warn' } }, 'blocked, again ', ago(blocked[0].blocked_until));
  if (slowed.length > 0) return h('span.state', { data: { tone: 'warn' } }, `${slowed[0].rate.toFixed(1)} of ${slowed[0].full_rate}/s`);
  return own ? [`${own.full_rate}/s`, h('span.small', {}, `${number(own.tokens)} of ${number(own.burst)} free`)] : 'none';
}

function circuit(provider, mayAct) {
  if (provider.circuits.length === 0) return h('span.state', { data: { tone: 'good' } }, 'closed');
  return provider.circuits.map((one) => h('div', {},
    h('span.state', { data: { tone: one.state === 'closed' ? 'warn' : 'bad' } }, one.state === 'closed' ? `closed, ${one.failures} faults` : words(one.state)),
    h('span.small', {}, [one.credential, one.reason && words(one.reason)].filter(Boolean).join(': '), one.retry_at && (Date.parse(one.retry_at) > now() ? [', tried again ', ago(one.retry_at)] : ', the next request tries it')),
    mayAct && h('button.button.small', { type: 'button', onclick: () => ask({
      title: `Close the circuit of ${provider.name}`, text: 'Polls and submissions go on at once. If the cause is still there, it opens again.',
      name: 'reset_circuit', body: { provider: provider.name, credential: one.credential }, verb: 'Close it',
    }) }, 'Close…')));
}
