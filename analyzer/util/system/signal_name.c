#include "analyzer/util/system/signal_name.h"

#include <signal.h>
#include <stddef.h>

/* clang-format off */
#define SIGNALS(X) \
	X(HUP) X(INT) X(QUIT) X(ILL) X(TRAP) X(ABRT) X(BUS) X(FPE) X(KILL) X(USR1) X(SEGV) X(USR2) X(PIPE) X(ALRM) \
	X(TERM) X(STKFLT) X(CHLD) X(CONT) X(STOP) X(TSTP) X(TTIN) X(TTOU) X(URG) X(XCPU) X(XFSZ) X(VTALRM) X(PROF) \
	X(WINCH) X(POLL) X(PWR) X(SYS)
/* clang-format on */

const char *signal_name(int number)
{
	static const char *const names[] = {
#define X(name) [SIG##name] = #name,
		SIGNALS(X)
#undef X
	};
	return number > 0 && (size_t)number < sizeof(names) / sizeof(*names) ? names[number] : NULL;
}
