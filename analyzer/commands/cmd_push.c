/* memtrace push: profiles of a running program, for Pyroscope and Parca. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/python_part.h"
#include "analyzer/commands/trace_of_pid.h"
#include "analyzer/analysis/newest_trace.h"
#include "analyzer/push/push.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "format/number.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MINUTE_NS    60000000000ull
#define LEAST_NS     1000000000ull
#define MOST_SAMPLES 2000
#define MOST_BYTES   (2u << 20)
#define WAIT_NS      30000000000ull

struct push_options {
	struct options common;
	const char *to, *service, *labels;
	uint64_t every, samples, bytes, wait;
};

static const struct option_row rows[] = {
	{ "to", 0, "SERVER", OPTION_STRING, offsetof(struct push_options, to),
	  "pyroscope or parca, at the URL (default: as MEMTRACE_PUSH says)", 0 },
	{ "every", 0, "TIME", OPTION_DURATION, offsetof(struct push_options, every),
	  "between two profiles (default 1m)", 0 },
	{ "service", 0, "NAME", OPTION_STRING, offsetof(struct push_options, service),
	  "label service_name (default: the program or script)", 0 },
	{ "labels", 0, "PAIRS", OPTION_STRING, offsetof(struct push_options, labels), "more labels: team=a,cluster=b",
	  0 },
	OPTIONS_ROW_PROCESS,
	{ "samples", 0, "N", OPTION_NUMBER, offsetof(struct push_options, samples),
	  "stacks of one profile; smaller ones are one sample together (default 2000)", 0 },
	{ "bytes", 0, "SIZE", OPTION_BYTES, offsetof(struct push_options, bytes),
	  "of one profile, compressed (default 2M)", 0 },
	{ "wait", 0, "TIME", OPTION_DURATION, offsetof(struct push_options, wait),
	  "for the server when the program has ended (default 30s)", 0 },
	OPTIONS_END,
};

const struct option_spec cmd_push_spec = {
	"memtrace push [--to pyroscope|parca URL] [options] [PID or DIR]",
	"Profiles of a running program for a server that keeps those of many: each\n"
	"minute what is alive and what was allocated since, by stack, for each kind of\n"
	"memory; once more just before a control group is full. Until the program ends.\n"
	"What can't be sent waits in the trace. If the program has ended: its end.",
	rows,
	OPTIONS_TEXT,
	"  memtrace push --to pyroscope http://pyroscope:4040 4711\n"
	"  MEMTRACE_PUSH=parca=http://parca:7070 torchrun ...     # its recorders do it\n",
	"Read: docs/push.md",
};

static volatile sig_atomic_t stopped;

/* The second one ends it at once, whatever it is at. */
static void stop(int number)
{
	stopped = 1;
	signal(number, SIG_DFL);
}

/* SERVER=URL, as MEMTRACE_PUSH has it; an argument can be seen by other users, a variable can't. */
static char *destination(const struct push_options *o)
{
	const char *variable = getenv("MEMTRACE_PUSH");
	return o->to ? output_format("%s=%s", o->to, o->common.ndirs ? o->common.dirs[0] : "")
		     : strdup(variable ? variable : "");
}

static int read_server(const struct push_options *o, const char *to, enum push_server *server)
{
	const size_t name = strcspn(to, "=");
	const char *url = to + name + (to[name] != '\0');
	unsigned i = 0;
	while (i < PUSH_SERVERS && (strlen(push_servers[i]) != name || strncmp(to, push_servers[i], name)))
		i++;
	*server = (enum push_server)i;
	if (i == PUSH_SERVERS)
		return error_set(MT_EUSAGE, "push", ERROR_NO_OFFSET, "--to pyroscope or parca, or MEMTRACE_PUSH");
	if (o->common.ndirs > (o->to ? 2 : 1) || (strncmp(url, "http://", 7) && strncmp(url, "https://", 8)))
		return error_set(MT_EUSAGE, "push", ERROR_NO_OFFSET,
				 "needs the server's URL, http://..., then one program at most");
	return 0;
}

static int check(const struct push_options *o)
{
	if (o->every < LEAST_NS)
		return error_set(MT_EUSAGE, "--every", ERROR_NO_OFFSET, "from 1 second on");
	if (o->samples < 1 || o->bytes < 1024)
		return error_set(MT_EUSAGE, o->samples < 1 ? "--samples" : "--bytes", ERROR_NO_OFFSET, "is too little");
	return 0;
}

static int push(const struct push_options *o, const char *to, enum push_server server, const char *dir)
{
	char wait[32];
	snprintf(wait, sizeof(wait), "%" PRIu64, o->wait / 1000000000u);
	char *const words[] = { (char *)dir, wait };
	char **sender = python_part_words("push", 2, words);
	if (!sender || setenv("MEMTRACE_PUSH", to, 1))
		return free(sender), error_memory();
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	int e = push_follow(&(struct push){ .options = &o->common,
					    .server = server,
					    .service = o->service,
					    .labels = o->labels,
					    .every_ns = o->every,
					    .most_samples = o->samples,
					    .most_bytes = o->bytes,
					    .sender = sender,
					    .stopped = &stopped },
			    dir);
	free(sender);
	return e;
}

int cmd_push(int argc, char **argv)
{
	struct push_options o = { .every = MINUTE_NS,
				  .samples = MOST_SAMPLES,
				  .bytes = MOST_BYTES,
				  .wait = WAIT_NS,
				  .service = getenv("MEMTRACE_PUSH_SERVICE"),
				  .labels = getenv("MEMTRACE_PUSH_LABELS") };
	enum push_server server = PUSH_PYROSCOPE;
	const char *every = getenv("MEMTRACE_PUSH_EVERY"), *program = NULL;
	char *owned = NULL, *to = NULL;
	unsigned passed;
	if (every && *every && mt_read_duration(every, &o.every))
		return error_set(MT_EUSAGE, "MEMTRACE_PUSH_EVERY", ERROR_NO_OFFSET, "%s: not like 1m", every);
	int e = options_parse(&cmd_push_spec, &o, argc, argv);
	if (e)
		return e < 0 ? e : 0;
	output_screen();
	to = destination(&o);
	e = to ? read_server(&o, to, &server) : error_memory();
	if (e == 0)
		e = check(&o);
	if (e == 0 && o.common.ndirs > (o.to ? 1 : 0))
		program = o.common.dirs[o.common.ndirs - 1];
	if (e == 0 && program)
		e = trace_of_pid(program, &owned);
	else if (e == 0 && !(owned = newest_trace(&passed)))
		e = error_set(MT_ENOTRACE, ".", ERROR_NO_OFFSET, "no trace is here");
	if (e == 0)
		e = push(&o, to, server, owned ? owned : program);
	free(owned);
	free(to);
	options_free(&o.common);
	return e;
}
