/** Types of aivedio.js. The guide is docs/browser.md. */

export type TaskStatus =
  | 'created'
  | 'submitting'
  | 'submitted'
  | 'queued'
  | 'running'
  | 'provider_status_unknown'
  | 'cancel_requested'
  | 'provider_succeeded'
  | 'processing_media'
  | 'ready'
  | 'failed'
  | 'canceled';

/** Equal to the status, but inside `processing_media`, where it says what is being done. */
export type TaskStage = TaskStatus | 'backhauling' | 'verifying' | 'transcoding' | 'publishing';

/**
 * A task as the database holds it. The members up to `last_event_id` are always there; the others
 * come with snapshots only, so a task that was born a moment ago may lack them briefly.
 */
export interface Task {
  readonly id: string;
  readonly task_version: number;
  readonly status: TaskStatus;
  readonly stage: TaskStage;
  /** 0 to 100 within the stage, or null where the stage has none. */
  readonly progress: number | null;
  readonly asset_id: string | null;
  readonly error: TaskError | null;
  readonly attempt_no: number;
  readonly cancel_requested: boolean;
  readonly updated_at: string;
  /** The event that made this version. */
  readonly last_event_id: number;

  readonly created_at?: string;
  readonly provider?: string;
  readonly model?: string;
  /** The first 500 characters of it. */
  readonly prompt?: string | null;
}

/** Why a task failed, in words that may be shown to its user. */
export interface TaskError {
  readonly code: string;
  readonly message: string;
  readonly trace_id: string;
}

/**
 * - `idle`: not started
 * - `connecting`: never live so far
 * - `live`: the same as `proven`
 * - `syncing`: connected, but a snapshot is awaited
 * - `reconnecting`: the connection was lost a moment ago
 * - `interrupted`: three failures in a row; a snapshot is read every 10 to 30 seconds. Or connected to
 *   a server that cannot reach its database
 * - `unauthorized`, `forbidden`: refused (401; 403 or 404); it is tried again now and then
 * - `ended`: the server said, by 204, that there is nothing more to come
 * - `closed`: `close()` was called
 */
export type FeedState =
  | 'idle'
  | 'connecting'
  | 'live'
  | 'syncing'
  | 'reconnecting'
  | 'interrupted'
  | 'unauthorized'
  | 'forbidden'
  | 'ended'
  | 'closed';

export interface FeedStatus {
  readonly state: FeedState;
  /** True while what is shown is proven to be all that the database holds. */
  readonly proven: boolean;
  /** Failed tries in a row. */
  readonly failures: number;
  /** The last refusal by the API, until a try succeeds. */
  readonly problem: ApiProblem | null;
  /** When what is shown was last known to be true, in milliseconds since 1970, or null. */
  readonly asOf: number | null;
  /** True once a first snapshot has arrived. */
  readonly loaded: boolean;
}

export interface FeedChange {
  /** Tasks that are new or differ from before. */
  readonly changed: readonly Task[];
  /** Ids of tasks that are gone, which only a restored database brings about. */
  readonly removed: readonly string[];
  readonly source: 'snapshot' | 'event' | 'command';
}

export interface TokenRequest {
  /** `stream` asks for a connection, `api` for a snapshot or a command. */
  readonly purpose: 'stream' | 'api';
  /** True when the last token was refused or is about to expire: do not answer from a cache. */
  readonly renew: boolean;
}

export interface FeedOptions {
  /** The project's id. */
  project: string;
  /** Where the gateway is, without a slash at the end; by default where the page is from. */
  base?: string;
  /**
   * A bearer token, or a function that gets one. The function is asked before every request,
   * and once more, with `renew`, when its token was refused. For a connection it may answer with
   * a one-time token, as `Stream …`. Without a token, cookies do.
   */
  token?: string | ((request: TokenRequest) => string | null | Promise<string | null>);
  /** For fetch; `same-origin` by default. */
  credentials?: RequestCredentials;
  /**
   * Whether the tabs of this browser share one connection. By default they do when cookies say
   * who is asking; with tokens, give a text that is the same only for the same user.
   */
  share?: boolean | string;
  /** How many of the newest tasks a snapshot holds at least; 2,000 by default. */
  limit?: number;
  onChange?: (change: FeedChange) => void;
  onStatus?: (status: FeedStatus) => void;
  /** Waiting times in milliseconds, for tests. */
  timing?: Partial<FeedTiming>;
}

export interface FeedTiming {
  request: number;
  silence: number;
  suspect: number;
  ask: number;
  watch: number;
  stable: number;
  backoff: number;
  backoffCap: number;
  nudge: number;
  hiddenFloor: number;
  pollMin: number;
  pollMax: number;
  resetJitter: number;
  behind: number;
  deniedWait: number;
  detail: number;
}

export interface NewTask {
  provider: string;
  model: string;
  /** What the provider gets; `prompt` is shown to the user. */
  input: Record<string, unknown>;
}

export interface CommandOptions {
  /** The idempotency key: two calls with one key have one effect. Made anew by default. */
  key?: string;
  signal?: AbortSignal;
}

export interface FeedCounters {
  readonly events: number;
  readonly repeats: number;
  /** Holes in the chain. The server never leaves one. */
  readonly breaks: number;
  readonly resets: number;
  readonly snapshots: number;
  readonly cursor: number | null;
  readonly head: number | null;
}

interface FeedEventMap {
  change: CustomEvent<FeedChange>;
  status: CustomEvent<FeedStatus>;
}

/** Follows one project: the newest state of its tasks, and whether it is proven complete. */
export class ProjectFeed extends EventTarget {
  constructor(options: FeedOptions);

  /** The tasks as they are known, newest first. */
  get tasks(): readonly Task[];
  get status(): FeedStatus;
  get proven(): boolean;
  get counters(): FeedCounters;
  get(id: string): Task | undefined;

  /** Begins to follow; a second call changes nothing. */
  start(): this;
  /** Ends everything, pending reconnects too. Only `start()` begins again. */
  close(): void;
  /** Connects again now, whatever the waiting time. */
  refresh(): void;

  /**
   * Creates a task. A lost answer is asked for again under the same key, so that one call never
   * makes two tasks. Rejects with `ApiProblem` when the server refuses.
   */
  createTask(task: NewTask, options?: CommandOptions): Promise<Task>;
  cancelTask(id: string, options?: Omit<CommandOptions, 'key'>): Promise<Task>;
  /** Starts a new attempt of a task that failed or was canceled. */
  retryTask(id: string, reason: string, options?: CommandOptions): Promise<Task>;

  addEventListener<K extends keyof FeedEventMap>(
    type: K,
    listener: (this: ProjectFeed, event: FeedEventMap[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

/** Makes a feed and starts it. */
export function connect(options: FeedOptions): ProjectFeed;

/** An answer of the API that is not a success. Branch on `status` and `code`, show `detail`. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string | null;
  readonly detail: string;
  readonly traceId: string | null;
  /** Milliseconds until another try makes sense, or null. */
  readonly retryAfter: number | null;
}

/** One event of an event stream. */
export interface StreamEvent {
  readonly type: string;
  readonly data: string;
  readonly id: string;
}

/** Splits the bytes of an event stream into events, wherever the chunks end. */
export class EventStreamParser {
  readonly lastEventId: string;
  readonly retry: number | null;
  push(bytes: Uint8Array): StreamEvent[];
}
