/*
 * Many browsers in one process: opens streams, reads them, checks that each is complete, and says
 * how late events came.
 *
 *     load PORTS SOURCES CONNECTIONS INFLIGHT REQUESTS KIND
 *
 * PORTS         of gateways on 127.0.0.1, separated by commas; connections take turns
 * SOURCES       so many addresses from 127.0.0.2 on are connected from, or ports would run out
 * INFLIGHT      so many connections are being opened at a time
 * REQUESTS      a file of requests, each "GROUP LENGTH\n" and then LENGTH bytes; connections take
 *               turns. "@@@@@@@@@@@@@@@@" in one is where the last event id goes
 * KIND          sse, ws (the gateway's), other (any event stream: nothing is checked), or path
 *               (as sse, of events that carry no "t": their `updated_at` counts)
 *
 * It obeys lines on stdin, and answers each with a line of JSON:
 *
 *     open        opens all; who is sent away comes back after a second, and again
 *     again MS    the same, spread over so many milliseconds
 *     drop        closes all
 *     stat        says what was seen, and counts anew
 *     until N MS  does so once group 0 has N events, or so many milliseconds have passed
 *     small N     the first N will have small buffers; before open
 *     deaf N      the first N read nothing from now on
 *
 * An event's lateness is now minus its "t", in nanoseconds of the real-time clock, by the GROUP
 * (0 to 3) of its connection.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

enum { CLOSED, CONNECTING, HEAD, OPENING, STREAMING };
enum { SSE, WS, OTHER };
#define GROUPS 4
#define STEP_US 20
#define STEPS 1000000 /* up to 20 s; more counts as that */
#define BUFFER (1 << 18)

typedef struct { char *text; size_t size; long cursor_at; int group; } request;
typedef struct {
  int fd, state, group;
  unsigned rest_size;
  char *rest; /* the beginning of a frame that is not whole yet */
  int64_t last;
} connection;

static request *requests; static int request_count;
static connection *conns; static int conn_count;
static int ports[64], port_count, sources, inflight_most, kind, poller;
static int next_open, open_limit, inflight, streaming, failed, lost, deaf;
static uint64_t events[GROUPS], gaps, resets, lat_count[GROUPS], lat_max[GROUPS], first_t[GROUPS], last_at[GROUPS];
static uint64_t awaited, awaited_until, try_at;
static int refusals_told;
static int patience; /* how often those who were sent away come back */
static int untimed; /* whether events carry no stamp */
static uint32_t *lat[GROUPS];
static int reopening; static uint64_t reopen_start, reopen_ms;
static char *buffer;

static uint64_t now_ns(void) {
  struct timespec t; clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int64_t number_after(const char *at, const char *end, const char *name, size_t size) {
  const char *found = memmem(at, end - at, name, size);
  if (!found) return -1;
  int64_t value = 0;
  for (found += size; found < end && *found >= '0' && *found <= '9'; found++)
    value = value * 10 + (*found - '0');
  return value;
}
#define NUMBER(at, end, name) number_after(at, end, name, sizeof name - 1)
#define HAS(at, end, name) (memmem(at, (end) - (at), name, sizeof name - 1) != NULL)

static void gone(connection *c) {
  if (c->state == STREAMING) { streaming--; lost++; } else if (c->state != CLOSED) { inflight--; failed++; }
  close(c->fd); free(c->rest);
  c->rest = NULL; c->rest_size = 0; c->state = CLOSED;
}

static void opened(connection *c) {
  if (c->state != STREAMING) { c->state = STREAMING; streaming++; inflight--; }
}

/* Without a stamp, the moment of the change itself counts. */
static int64_t changed_at(const char *at, const char *end) {
  static const char name[] = "\"updated_at\":\"";
  const char *found = memmem(at, end - at, name, sizeof name - 1);
  struct tm day = {0}; int micro = 0;
  if (!untimed || !found || end - found < 45) return -1;
  if (sscanf(found + sizeof name - 1, "%d-%d-%dT%d:%d:%d.%6d", &day.tm_year, &day.tm_mon, &day.tm_mday,
             &day.tm_hour, &day.tm_min, &day.tm_sec, &micro) != 7) return -1;
  day.tm_year -= 1900; day.tm_mon -= 1;
  return timegm(&day) * 1000000000ll + micro * 1000ll;
}

static void late(connection *c, const char *at, const char *end, uint64_t now) {
  int64_t t = NUMBER(at, end, "\"t\":");
  if (t <= 0) t = changed_at(at, end);
  if (t <= 0) return;
  uint64_t us = now > (uint64_t)t ? (now - t) / 1000 : 0, step = us / STEP_US;
  lat[c->group][step < STEPS ? step : STEPS - 1]++;
  lat_count[c->group]++;
  if (us > lat_max[c->group]) lat_max[c->group] = us;
  if (!first_t[c->group] || (uint64_t)t < first_t[c->group]) first_t[c->group] = t;
  last_at[c->group] = now;
}

static void event(connection *c, int64_t id, int64_t prev, const char *at, const char *end, uint64_t now) {
  if (prev != c->last) gaps++;
  c->last = id; events[c->group]++;
  late(c, at, end, now);
}

static void sse_frame(connection *c, const char *at, const char *end, uint64_t now) {
  if (kind == OTHER) {
    opened(c);
    if (HAS(at, end, "\"t\":")) { events[c->group]++; late(c, at, end, now); }
    return;
  }
  int64_t id = NUMBER(at, end, "id: ");
  if (HAS(at, end, "\nevent: task.status")) event(c, id, NUMBER(at, end, "\"prev\":"), at, end, now);
  else if (HAS(at, end, "event: ready")) { c->last = id; opened(c); }
  else if (HAS(at, end, "event: reset")) { c->last = id; resets++; opened(c); }
}

static void ws_frame(connection *c, const char *at, const char *end, uint64_t now) {
  if (HAS(at, end, "\"type\":\"task.status\""))
    event(c, NUMBER(at, end, "\"event_id\":"), NUMBER(at, end, "\"prev\":"), at, end, now);
  else if (HAS(at, end, "\"type\":\"ready\"")) { c->last = NUMBER(at, end, "\"cursor\":"); opened(c); }
  else if (HAS(at, end, "\"type\":\"reset\"")) { c->last = NUMBER(at, end, "\"cursor\":"); resets++; opened(c); }
}

/* Takes what is whole out of the bytes; returns how many were taken. */
static size_t frames(connection *c, const char *data, size_t size, uint64_t now) {
  const char *at = data, *end = data + size;
  if (kind != WS) {
    const char *stop;
    while ((stop = memmem(at, end - at, "\n\n", 2))) { sse_frame(c, at, stop + 1, now); at = stop + 2; }
    return at - data;
  }
  while (end - at >= 2) {
    const unsigned char *u = (const unsigned char *)at;
    size_t head = 2, length = u[1] & 127;
    if (length == 126) { head = 4; if (end - at < 4) break; length = u[2] << 8 | u[3]; }
    if (length == 127) { head = 10; if (end - at < 10) break; length = 0; for (int i = 2; i < 10; i++) length = length << 8 | u[i]; }
    if ((size_t)(end - at) < head + length) break;
    if ((u[0] & 15) == 9) { /* a pong: masked by zeros */
      unsigned char pong[6] = {0x8A, 0x80, 0, 0, 0, 0};
      if (send(c->fd, pong, 6, MSG_NOSIGNAL) < 0) { }
    } else if ((u[0] & 15) == 1) ws_frame(c, at + head, at + head + length, now);
    at += head + length;
  }
  return at - data;
}

static void readable(connection *c) {
  for (;;) {
    if (c->rest_size) memcpy(buffer, c->rest, c->rest_size);
    ssize_t got = recv(c->fd, buffer + c->rest_size, BUFFER - c->rest_size, 0);
    if (got <= 0) {
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      gone(c); return;
    }
    size_t size = c->rest_size + got, taken = 0;
    if (c->state == HEAD) {
      char *end = memmem(buffer, size, "\r\n\r\n", 4);
      if (end) {
        const char *wanted = kind == WS ? "HTTP/1.1 101" : "HTTP/1.1 200";
        if (strncmp(buffer, wanted, 12)) { if (refusals_told++ < 1) fprintf(stderr, "%.*s\n", (int)(size > 400 ? 400 : size), buffer); gone(c); return; }
        taken = end + 4 - buffer; c->state = OPENING;
      }
    }
    if (c->state != HEAD) taken += frames(c, buffer + taken, size - taken, now_ns());
    unsigned rest = size - taken;
    if (rest == 0) { free(c->rest); c->rest = NULL; }
    else { char *kept = malloc(rest); memcpy(kept, buffer + taken, rest); free(c->rest); c->rest = kept; }
    c->rest_size = rest;
    if ((size_t)got < BUFFER / 2) return;
  }
}

static void begin(int number) {
  connection *c = &conns[number];
  request *r = &requests[number % request_count];
  if (c->state != CLOSED) return;
  c->group = r->group;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (c->fd < 0) { perror("socket"); failed++; return; }
  int yes = 1, small = 4096;
  if (number < deaf) setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
  struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET};
  from.sin_addr.s_addr = htonl(0x7f000002 + number % sources);
  to.sin_addr.s_addr = htonl(0x7f000001);
  to.sin_port = htons(ports[number % port_count]);
  if (bind(c->fd, (struct sockaddr *)&from, sizeof from)) { perror("bind"); close(c->fd); failed++; return; }
  c->state = CONNECTING; inflight++;
  if (connect(c->fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS) { perror("connect"); gone(c); return; }
  struct epoll_event e = {.events = EPOLLOUT, .data.u32 = number};
  epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &e);
}

static void ask(int number) {
  connection *c = &conns[number];
  request *r = &requests[number % request_count];
  if (r->cursor_at >= 0) {
    char digits[17]; snprintf(digits, sizeof digits, "%016lld", (long long)c->last);
    memcpy(r->text + r->cursor_at, digits, 16);
  }
  if (send(c->fd, r->text, r->size, MSG_NOSIGNAL) != (ssize_t)r->size) { gone(c); return; }
  c->state = HEAD;
  struct epoll_event e = {.events = EPOLLIN, .data.u32 = number};
  epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &e);
}

static uint64_t percentile(int group, double part) {
  uint64_t seen = 0, wanted = lat_count[group] * part;
  for (int step = 0; step < STEPS; step++) if ((seen += lat[group][step]) > wanted) return (uint64_t)step * STEP_US;
  return lat_max[group];
}

static void report(void) {
  printf("{\"streaming\":%d,\"failed\":%d,\"lost\":%d,\"gaps\":%llu,\"resets\":%llu,\"groups\":[",
         streaming, failed, lost, (unsigned long long)gaps, (unsigned long long)resets);
  for (int g = 0; g < GROUPS; g++)
    printf("%s{\"events\":%llu,\"timed\":%llu,\"span_us\":%llu,\"p50_us\":%llu,\"p99_us\":%llu,\"max_us\":%llu}",
           g ? "," : "", (unsigned long long)events[g], (unsigned long long)lat_count[g],
           (unsigned long long)(last_at[g] > first_t[g] ? (last_at[g] - first_t[g]) / 1000 : 0),
           (unsigned long long)percentile(g, 0.5), (unsigned long long)percentile(g, 0.99),
           (unsigned long long)lat_max[g]);
  int64_t least = INT64_MAX, most = 0;
  for (int i = 0; i < conn_count; i++) if (conns[i].state == STREAMING) { if (conns[i].last < least) least = conns[i].last; if (conns[i].last > most) most = conns[i].last; }
  printf("],\"least\":%lld,\"most\":%lld}\n", (long long)(least == INT64_MAX ? 0 : least), (long long)most);
  fflush(stdout);
  for (int g = 0; g < GROUPS; g++) { memset(lat[g], 0, STEPS * sizeof **lat); lat_count[g] = lat_max[g] = events[g] = first_t[g] = last_at[g] = 0; }
  gaps = resets = 0; lost = failed = 0;
}

static void read_requests(const char *path) {
  FILE *file = fopen(path, "r"); int group; size_t size;
  if (!file) { perror(path); exit(1); }
  while (fscanf(file, "%d %zu", &group, &size) == 2) {
    fgetc(file);
    requests = realloc(requests, (request_count + 1) * sizeof *requests);
    char *text = malloc(size);
    if (fread(text, 1, size, file) != size) exit(1);
    char *mark = memmem(text, size, "@@@@@@@@@@@@@@@@", 16);
    requests[request_count++] = (request){text, size, mark ? mark - text : -1, group};
  }
  fclose(file);
}

int main(int argc, char **argv) {
  if (argc != 7) return 2;
  struct rlimit limit; getrlimit(RLIMIT_NOFILE, &limit); limit.rlim_cur = limit.rlim_max; setrlimit(RLIMIT_NOFILE, &limit);
  for (char *part = strtok(argv[1], ","); part; part = strtok(NULL, ",")) ports[port_count++] = atoi(part);
  sources = atoi(argv[2]); conn_count = atoi(argv[3]); inflight_most = atoi(argv[4]);
  read_requests(argv[5]);
  untimed = !strcmp(argv[6], "path");
  kind = !strcmp(argv[6], "ws") ? WS : !strcmp(argv[6], "other") ? OTHER : SSE;
  conns = calloc(conn_count, sizeof *conns); buffer = malloc(BUFFER);
  for (int g = 0; g < GROUPS; g++) lat[g] = calloc(STEPS, sizeof **lat);
  poller = epoll_create1(0);
  struct epoll_event in = {.events = EPOLLIN, .data.u32 = UINT32_MAX};
  epoll_ctl(poller, EPOLL_CTL_ADD, 0, &in);
  fcntl(0, F_SETFL, O_NONBLOCK);
  int answering = 0; char line[128]; size_t have = 0;
  static struct epoll_event ready[1024];
  for (;;) {
    if (reopening) {
      uint64_t passed = (now_ns() - reopen_start) / 1000000;
      open_limit = passed >= reopen_ms ? conn_count : (int)((double)conn_count * passed / reopen_ms);
      if (open_limit == conn_count) reopening = 0;
    }
    while (next_open < open_limit && inflight < inflight_most) begin(next_open++);
    if (answering && next_open == conn_count && inflight == 0) {
      /* Whoever was sent away comes back after a second, as browsers do. */
      if (streaming < conn_count && patience > 0) {
        if (!try_at) try_at = now_ns() + 1000000000ull;
        else if (now_ns() > try_at) { try_at = 0; patience--; next_open = 0; }
      } else { answering = 0; report(); }
    }
    if (awaited && (events[0] >= awaited || now_ns() > awaited_until)) { awaited = 0; report(); }
    int count = epoll_wait(poller, ready, 1024, reopening ? 1 : 20);
    for (int i = 0; i < count; i++) {
      uint32_t number = ready[i].data.u32;
      if (number != UINT32_MAX) {
        connection *c = &conns[number];
        if (c->state == CONNECTING) {
          int error = 0; socklen_t size = sizeof error;
          getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
          if (error) gone(c); else ask(number);
        } else if (c->state != CLOSED) readable(c);
        continue;
      }
      ssize_t got = read(0, line + have, sizeof line - 1 - have);
      if (got == 0) return 0;
      if (got > 0) have += got;
      line[have] = 0;
      char *end;
      while ((end = strchr(line, '\n'))) {
        *end = 0;
        int value = 0; long long many = 0;
        if (!strcmp(line, "open")) { open_limit = conn_count; answering = 1; patience = 60; }
        else if (!strcmp(line, "stat")) report();
        else if (sscanf(line, "deaf %d", &value) == 1) {
          for (int n = 0; n < value && n < conn_count; n++) epoll_ctl(poller, EPOLL_CTL_DEL, conns[n].fd, NULL);
          report();
        } else if (sscanf(line, "small %d", &value) == 1) { deaf = value; report(); }
        else if (!strcmp(line, "drop")) {
          for (int n = 0; n < conn_count; n++) if (conns[n].state != CLOSED) gone(&conns[n]);
          report();
        } else if (sscanf(line, "again %d", &value) == 1) {
          next_open = open_limit = 0; reopening = 1; answering = 1; patience = 60; reopen_start = now_ns(); reopen_ms = value;
        }
        else if (sscanf(line, "until %lld %d", &many, &value) == 2) { awaited = many; awaited_until = now_ns() + value * 1000000ull; }
        have -= end + 1 - line; memmove(line, end + 1, have + 1);
      }
    }
  }
}
