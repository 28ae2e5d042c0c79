/** Milliseconds. A caller may replace single values by the option `timing`. */
export const TIMING = Object.freeze({
  request: 15_000, //       an API call, and a stream until it says `ready`
  silence: 65_000, //       no byte for so long: the connection is dead (a ping comes every 25 s)
  suspect: 30_000, //       the same after the network changed, and for the tab that leads
  ask: 2_000, //            how long that tab may take to answer
  watch: 5_000, //          how often the proof is looked at when nothing arrives
  stable: 5_000, //         a connection that lived so long clears the count of failures
  backoff: 1_000, //        the first wait, doubled by each failure in a row …
  backoffCap: 30_000, //    … up to this, and then drawn evenly from zero to it
  nudge: 1_000, //          the shortest wait, even when something says "now"
  hiddenFloor: 30_000, //   the shortest wait of a hidden page that keeps failing
  pollMin: 10_000, //       snapshots while the stream is interrupted
  pollMax: 30_000,
  resetJitter: 2_000, //    a reset reaches every browser at once, their snapshots should not
  behind: 10_000, //        how long the stream may lag behind a snapshot
  deniedWait: 30_000, //    between tries while signed out or not allowed
  detail: 60, //            events of new tasks gather so long before their details are asked for
});

/** A time between zero and a limit that doubles with each failure in a row. */
export function drawn(failures, { backoff, backoffCap }) {
  if (failures < 1) return 0;
  return Math.random() * Math.min(backoffCap, backoff * 2 ** Math.min(failures - 1, 20));
}
