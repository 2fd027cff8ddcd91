#include "analyzer/push/push_queue.h"

#include "analyzer/model/selection/selection.h"
#include "analyzer/report/export/export.h"
#include "analyzer/util/base64.h"
#include "analyzer/util/error.h"
#include "analyzer/util/system/new_file.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUEUE_MOST (64u << 20)

const char *const push_servers[PUSH_SERVERS] = { "pyroscope", "parca" };

/* ---- labels ---------------------------------------------------------------------------------------------- */

/* One that is there already stays. Names are as Prometheus has them. */
static int add_label(json_t *list, const char *name, const char *value)
{
	json_t *label, *clean_name;
	size_t i;
	char *clean = export_clean(value), *word = strdup(name);
	for (char *c = word; c && *c; c++)
		if (!isalnum((unsigned char)*c) || (c == word && isdigit((unsigned char)*c)))
			*c = '_';
	int e = clean && word ? 0 : error_memory();
	json_array_foreach(list, i, label)
	{
		clean_name = json_object_get(label, "name");
		if (word && !strcmp(json_string_value(clean_name), word))
			goto done;
	}
	if (e == 0 && *word && *clean &&
	    json_array_append_new(list, json_pack("{s:s, s:s}", "name", word, "value", clean)))
		e = error_memory();
done:
	free(clean);
	free(word);
	return e;
}

static int add_number(json_t *list, const char *name, int64_t number)
{
	char text[32];
	snprintf(text, sizeof(text), "%" PRId64, number);
	return add_label(list, name, text);
}

/* "team=a,cluster=b": as many labels. */
static int add_pairs(json_t *list, const char *pairs)
{
	char *copy = strdup(pairs ? pairs : ""), *rest, *value;
	int e = copy ? 0 : error_memory();
	for (char *word = copy ? strtok_r(copy, ", ", &rest) : NULL; word && e == 0;
	     word = strtok_r(NULL, ", ", &rest)) {
		value = strchr(word, '=');
		if (!value)
			continue;
		*value++ = '\0';
		e = add_label(list, word, value);
	}
	free(copy);
	return e;
}

/* What an interpreter runs, else the program's name. */
static const char *service_of(const struct process *p)
{
	const char *word = NULL;
	for (unsigned i = 1; !strncmp(p->program, "python", 6) && i < p->argc && !word; i++) {
		if (!strcmp(p->argv[i], "-c"))
			break;
		if (p->argv[i][0] != '-')
			word = p->argv[i];
		else if (!strcmp(p->argv[i], "-W") || !strcmp(p->argv[i], "-X"))
			i++;
	}
	return word && *word ? base_name(word) : p->program;
}

static json_t *labels_of(const struct push *push, const struct process *p, const char *kind, const char *device)
{
	json_t *list = json_array();
	int e = list ? add_label(list, "__name__", kind) : -MT_EMEMORY;
	if (e == 0 && push->server == PUSH_PYROSCOPE) /* what was allocated is so since the last time */
		e = json_array_append_new(list, json_pack("{s:s, s:s}", "name", "__delta__", "value", "false"));
	if (e == 0)
		e = add_label(list, "service_name", push->service ? push->service : service_of(p));
	if (e == 0)
		e = add_label(list, "device", device);
	if (e == 0)
		e = add_label(list, "host", p->host->name);
	if (e == 0)
		e = add_number(list, "pid", p->pid);
	if (e == 0 && p->rank != PROCESS_NO_RANK)
		e = add_number(list, "rank", p->rank);
	if (e == 0 && *p->job)
		e = add_label(list, "job", p->job);
	if (e == 0)
		e = add_pairs(list, push->labels);
	if (e == 0)
		e = add_pairs(list, p->tags);
	if (e == 0)
		return list;
	json_decref(list);
	return NULL;
}

/* ---- requests -------------------------------------------------------------------------------------------- */

/* As push.v1.PushRequest and parca.profilestore.v1alpha1.WriteRawRequest are in JSON. */
static json_t *series_of(const struct push *push, json_t *labels, const char *profile, size_t bytes)
{
	char *text = malloc(BASE64_BYTES(bytes) + 1);
	json_t *series = NULL;
	if (text && labels) {
		base64_encode((const unsigned char *)profile, bytes, text);
		text[BASE64_BYTES(bytes)] = '\0';
		labels = push->server == PUSH_PARCA ? json_pack("{s:o}", "labels", labels) : labels;
		series = json_pack("{s:o, s:[{s:s}]}", "labels", labels, "samples", "rawProfile", text);
	} else {
		json_decref(labels);
	}
	free(text);
	return series;
}

static unsigned number_of(const char *name)
{
	unsigned number, length = 0;
	return sscanf(name, "push-%6u.json%n", &number, &length) == 1 && length && !name[length] ? number : 0;
}

struct waiting {
	unsigned oldest, newest; /* 0 = there is none */
	uint64_t bytes;
};

static struct waiting look(const struct push_queue *q)
{
	struct waiting w = { 0 };
	struct stat st;
	DIR *dir = opendir(q->dir);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		const unsigned number = number_of(entry->d_name);
		if (!number || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		w.bytes += (uint64_t)st.st_size;
		w.oldest = !w.oldest || number < w.oldest ? number : w.oldest;
		w.newest = number > w.newest ? number : w.newest;
	}
	if (dir)
		closedir(dir);
	return w;
}

static char *path_of(const struct push_queue *q, unsigned number)
{
	return output_format("%s/push-%06u.json", q->dir, number);
}

/* Of all that waits the oldest goes. */
static void make_room(struct push_queue *q)
{
	for (struct waiting w = look(q); w.bytes > QUEUE_MOST; w = look(q)) {
		char *path = path_of(q, w.oldest);
		if (!path || (unlink(path) && errno != ENOENT))
			w.bytes = 0;
		free(path);
		q->dropped += w.bytes != 0;
		if (!w.bytes)
			return;
	}
}

static int write_request(struct push_queue *q)
{
	char *path = path_of(q, ++q->number);
	struct new_file file;
	int e = path ? new_file_open(&file, path) : error_memory();
	if (e == 0) {
		json_t *request = json_pack("{s:O}", "series", q->series);
		bool whole = request && json_dumpf(request, file.file, JSON_COMPACT) == 0;
		json_decref(request);
		e = new_file_close(&file, whole);
	}
	free(path);
	json_array_clear(q->series);
	q->bytes = 0;
	make_room(q);
	return e;
}

int push_queue_add(struct push_queue *q, const struct process *p, const char *kind, const char *device,
		   const char *profile, size_t bytes)
{
	int e = q->bytes && q->bytes + bytes > q->push->most_bytes ? write_request(q) : 0;
	json_t *series = series_of(q->push, labels_of(q->push, p, kind, device), profile, bytes);
	if (!series || json_array_append_new(q->series, series))
		return error_memory();
	q->bytes += bytes;
	return e;
}

/* ---- the sender ------------------------------------------------------------------------------------------ */

static void become_sender(const struct push_queue *q, int end)
{
	signal(SIGINT, SIG_IGN); /* of a terminal: it ends when we do */
	signal(SIGPIPE, SIG_DFL);
	dup2(end, STDIN_FILENO);
	execvp(q->push->sender[0], q->push->sender);
	_exit(127);
}

static int start_sender(struct push_queue *q)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return error_errno(MT_ERUN, "pipe", ERROR_NO_OFFSET);
	q->sender = fork();
	if (q->sender == 0)
		become_sender(q, ends[0]);
	close(ends[0]);
	q->sender_pipe = ends[1];
	if (q->sender > 0)
		return 0;
	q->sender = 0;
	close(ends[1]);
	return error_errno(MT_ERUN, "fork", ERROR_NO_OFFSET);
}

static void end_sender(struct push_queue *q)
{
	if (!q->sender)
		return;
	close(q->sender_pipe);
	while (waitpid(q->sender, NULL, 0) < 0 && errno == EINTR)
		;
	q->sender = 0;
}

int push_queue_flush(struct push_queue *q)
{
	int e = json_array_size(q->series) ? write_request(q) : 0;
	if (e < 0 || (q->sender && write(q->sender_pipe, "\n", 1) == 1))
		return e;
	end_sender(q);
	return start_sender(q);
}

int push_queue_open(struct push_queue *q, const struct push *push, const char *dir)
{
	*q = (struct push_queue){ .push = push, .dir = dir, .lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	if (q->lock < 0)
		return error_errno(MT_ENOTRACE, dir, ERROR_NO_OFFSET);
	if (flock(q->lock, LOCK_EX | LOCK_NB))
		return error_set(MT_EUSAGE, dir, ERROR_NO_OFFSET, "is pushed already");
	signal(SIGPIPE, SIG_IGN);
	q->series = json_array();
	q->number = look(q).newest;
	return q->series ? 0 : error_memory();
}

/* Where the recorder has started us, and there was nothing to say. */
static void remove_empty_log(const struct push_queue *q)
{
	struct stat st;
	char *path = output_format("%s/push.log", q->dir);
	if (path && !lstat(path, &st) && S_ISREG(st.st_mode) && !st.st_size)
		unlink(path);
	free(path);
}

void push_queue_close(struct push_queue *q)
{
	end_sender(q);
	if (q->dropped)
		print_error("memtrace: push: %" PRIu64 " requests were dropped, as more than 64 MiB waited\n",
			    q->dropped);
	if (q->series)
		remove_empty_log(q);
	json_decref(q->series);
	if (q->lock >= 0)
		close(q->lock);
}
