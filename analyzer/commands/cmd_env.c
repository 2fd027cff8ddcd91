/* memtrace env: the settings as shell commands, for launchers that start the programs themselves. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/launch_options.h"
#include "analyzer/util/error.h"
#include "analyzer/util/print.h"
#include "analyzer/util/shell.h"
#include "analyzer/util/suggest.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct env_options {
	struct record_options record;
	bool undo;
	const char *launcher;
};

static const struct option_row rows[] = {
	RECORD_ROWS,
	{ "undo", 0, NULL, OPTION_FLAG, offsetof(struct env_options, undo),
	  "what takes these settings back: eval $(memtrace env --undo)", 0 },
	{ "for", 0, "LAUNCHER", OPTION_STRING, offsetof(struct env_options, launcher),
	  "prints the line for torchrun, accelerate, deepspeed, slurm, mpi, ray, k8s or jupyter instead", 0 },
	OPTIONS_END,
};

const struct option_spec cmd_env_spec = {
	"eval $(memtrace env [options])",
	"Prints what makes every program started from this shell record itself: for\n"
	"torchrun, accelerate, deepspeed, srun, ray or a kernel.json. Small commands that\n"
	"a shell is used with (ls, date, less, git ...) are left out by MEMTRACE_EXCLUDE,\n"
	"which can be edited, or given by --exclude.",
	rows,
	OPTIONS_NO_DIRS,
	"  eval $(memtrace env -o /data/%n-%p)\n"
	"  memtrace env --for torchrun\n",
	"Read: docs/env.md",
};

/* What people type between two runs, and what reads a report. Not shells, which run scripts, and no name that one's own
 * program may have (test, join, sort). */
static const char small_commands[] =
	"ls,cat,tac,head,tail,less,more,most,man,date,cal,echo,printf,true,false,pwd,env,printenv,id,whoami,groups,who,uname,"
	"hostname,arch,nproc,uptime,free,df,du,lsblk,mount,ps,pgrep,pkill,pidof,kill,top,htop,watch,lsof,lscpu,lspci,nvidia-smi,"
	"npu-smi,sleep,tee,wc,cut,tr,uniq,nl,seq,fmt,column,grep,egrep,fgrep,rg,sed,awk,gawk,mawk,find,xargs,which,whereis,stat,"
	"basename,dirname,realpath,readlink,touch,mkdir,rmdir,rm,cp,mv,ln,chmod,chown,mktemp,md5sum,sha256sum,od,xxd,hexdump,stty,"
	"tty,tput,clear,reset,dircolors,lesspipe,locale,git,vi,vim,nvim,nano,emacs,ssh,scp,rsync,curl,wget,jq,tmux,screen";

static int print_export(const char *name, const char *value, void *unused)
{
	(void)unused;
	char *word = shell_quoted(value);
	print("export %s=%s;\n", name, word);
	free(word);
	return word ? 0 : error_memory();
}

static int print_undo(void)
{
	char others[PATH_MAX];

	for (const char *const *name = record_variables; *name; name++)
		print("unset %s;\n", *name);
	record_other_preloads(others, sizeof(others));
	if (*others)
		return print_export("LD_PRELOAD", others, NULL);
	print("unset LD_PRELOAD;\n");
	return 0;
}

static const struct {
	const char *name, *text;
} launchers[] = {
#define LAUNCHER(name, text) { #name, text },
#include "analyzer/help/launchers.def"
#undef LAUNCHER
};

static int unknown_launcher(const char *name)
{
	struct suggestion s = { .text = name };

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
		suggest(&s, launchers[i].name);
	if (s.best)
		return error_set(MT_EUSAGE, "--for", ERROR_NO_OFFSET, "unknown value '%s'; did you mean '%s'?", name,
				 s.best);
	return error_set(MT_EUSAGE, "--for", ERROR_NO_OFFSET,
			 "'%s' is no launcher that is known; see memtrace env --help", name);
}

static int print_for(const char *name)
{
	static const char mark[] = "@LIBRARY@";
	char library[PATH_MAX];

	record_library(library, sizeof(library));
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const char *text = launchers[i].text, *at;
		if (strcmp(name, launchers[i].name))
			continue;
		for (; (at = strstr(text, mark)); text = at + strlen(mark)) {
			print_as_is(text, (size_t)(at - text));
			print("%s", *library ? library : "libmemtrace.so");
		}
		print_as_is(text, strlen(text));
		return 0;
	}
	return unknown_launcher(name);
}

int cmd_env(int argc, char **argv)
{
	struct env_options o = { 0 };
	int e = options_parse(&cmd_env_spec, &o, argc, argv);

	if (e)
		return e > 0 ? 0 : e;
	if (o.undo)
		return print_undo();
	if (o.launcher)
		return print_for(o.launcher);
	record_unknown_variables();
	if (!o.record.exclude && !getenv("MEMTRACE_EXCLUDE"))
		o.record.exclude = small_commands;
	e = launch_options_apply(&o.record, print_export, NULL);
	/* last: an eval without quotes makes one line of all, and a comment goes to its end */
	if (!e)
		print("# to undo: eval $(memtrace env --undo)\n");
	return e;
}
