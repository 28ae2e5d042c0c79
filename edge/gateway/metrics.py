"""The gateway's metrics."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

STREAMS = Gauge("aivedio_gateway_streams", "Open event streams.")
HUBS = Gauge("aivedio_gateway_hubs", "Projects whose stream is held in memory.")
OPENED = Counter("aivedio_gateway_streams_opened_total", "Event streams that were opened.")
CLOSED = Counter(
    "aivedio_gateway_streams_closed_total", "Event streams that ended, by who ended them.", ["why"]
)
REFUSED = Counter("aivedio_gateway_refused_total", "Requests that got a problem.", ["code"])
RESETS = Counter(
    "aivedio_gateway_resets_total", "Cursors that could not be continued, by reason.", ["reason"]
)
DELIVERIES = Counter("aivedio_gateway_deliveries_total", "Batches written to connections.")
MESSAGES = Counter(
    "aivedio_gateway_messages_total", "Messages from Redis, by what they were.", ["kind"]
)
READS = Counter("aivedio_gateway_reads_total", "Reads of events from PostgreSQL.", ["kind"])
FAILED_READS = Counter("aivedio_gateway_failed_reads_total", "Reads of events that failed.")
LOOKS = Counter("aivedio_gateway_looks_total", "Looks for streams that moved.", ["kind", "result"])
SNAPSHOTS = Counter(
    "aivedio_gateway_snapshots_total", "Snapshots, by whether one was shared.", ["how"]
)
SUBSCRIBED = Gauge("aivedio_gateway_subscribed", "1 while Redis confirmed the subscription.")
SUBSCRIPTIONS = Counter("aivedio_gateway_subscriptions_total", "Confirmed subscriptions.")
DEGRADED = Gauge(
    "aivedio_gateway_degraded", "1 while no beat comes through bus and Redis: events are late."
)
AWAY = Gauge("aivedio_gateway_database_away", "1 while PostgreSQL gives no answer.")
BEAT_AGE = Gauge("aivedio_gateway_beat_age_seconds", "Time since the last beat.")
STALLS = Counter("aivedio_gateway_loop_stalls_total", "Times the event loop stood still for 1 s.")
LOOP_LAG = Histogram(
    "aivedio_gateway_loop_lag_seconds",
    "How late the event loop's timers fire.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)
