/**
 * What a job's state looks like: pure functions from a task to words and proportions.
 *
 * A job passes seven steps. The weight of a step is its share of the bar, the same as in page.css.
 */

export const STEPS = Object.freeze([
  { name: 'Queued', weight: 1 },
  { name: 'Generating', weight: 3 },
  { name: 'Backhauling', weight: 1.25 },
  { name: 'Verifying', weight: 1 },
  { name: 'Transcoding', weight: 1.25 },
  { name: 'Publishing', weight: 1 },
  { name: 'Ready', weight: 0.7 },
]);

const WHOLE = STEPS.reduce((sum, { weight }) => sum + weight, 0);
const READY = STEPS.length - 1;

const STEP_OF_STAGE = {
  created: 0, submitting: 0, submitted: 0, queued: 0,
  running: 1, provider_status_unknown: 1,
  provider_succeeded: 2, backhauling: 2, verifying: 3, transcoding: 4, publishing: 5,
  ready: READY,
};

const WORDS = {
  created: 'Created', submitting: 'Submitting', submitted: 'Submitted', queued: 'Queued',
  running: 'Generating', provider_status_unknown: 'Asking the provider',
  cancel_requested: 'Canceling', provider_succeeded: 'Generated',
  backhauling: 'Backhauling', verifying: 'Verifying', transcoding: 'Transcoding',
  publishing: 'Publishing', ready: 'Ready', failed: 'Failed', canceled: 'Canceled',
};

/** Where a job must have been when it failed with this code. */
const STEP_OF_ERROR = {
  provider_failed: 1, timed_out: 1, canceled_by_provider: 1, media_failed: 2,
};

const KINDS = {
  created: 'waiting', submitting: 'waiting', submitted: 'waiting', queued: 'waiting',
  provider_status_unknown: 'doubt', cancel_requested: 'doubt',
  ready: 'ready', failed: 'failed', canceled: 'canceled',
};

export const TERMINAL = new Set(['ready', 'failed', 'canceled']);

/** The states that the overview counts, in the order of the path, then the two sad ends. */
export const CELLS = Object.freeze([
  ...STEPS.map(({ name }, step) => ({ key: `step${step}`, name })),
  { key: 'failed', name: 'Failed' },
  { key: 'canceled', name: 'Canceled' },
]);

/** The cell of the overview that counts this task. */
export function cellOf(task, reached) {
  if (task.status === 'failed' || task.status === 'canceled') return task.status;
  return `step${STEP_OF_STAGE[task.stage] ?? Math.max(reached ?? 1, 0)}`;
}

/**
 * The step that a task is in. Stages that say nothing of it (canceling, failed) keep the step
 * that was `reached` before, or the one that the error tells, or none.
 */
export function stepOf(task, reached) {
  return STEP_OF_STAGE[task.stage] ?? reached ?? STEP_OF_ERROR[task.error?.code] ?? -1;
}

/** Everything that a card shows of a task's state. */
export function view(task, reached) {
  const step = stepOf(task, reached);
  const kind = KINDS[task.status] ?? 'active';
  const over = TERMINAL.has(task.status);
  const known = Number.isFinite(task.progress);
  const part = known ? Math.min(Math.max(task.progress / 100, 0), 1) : 0;
  const measured = known && !over && STEP_OF_STAGE[task.stage] >= 1;

  const parts = STEPS.map((_, index) => {
    if (task.status === 'ready' || index < step) return 1;
    if (index > step) return 0;
    if (over) return 1;
    return measured ? part : 0;
  });
  const done = parts.reduce((sum, filled, index) => sum + filled * STEPS[index].weight, 0);
  const word = WORDS[task.stage] ?? WORDS[task.status] ?? task.status;
  return {
    kind,
    step,
    parts,
    percent: Math.round((100 * done) / WHOLE),
    // A step that runs without a number is drawn as moving, but not as filled.
    unmeasured: !over && !measured && step >= 0 ? step : -1,
    label: measured ? `${word} ${Math.round(part * 100)}%` : word,
  };
}
