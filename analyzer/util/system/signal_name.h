/* Names of signals, as sigabbrev_np() has them, which glibc has since 2.32 only. */
#ifndef MT_UTIL_SYSTEM_SIGNAL_NAME_H
#define MT_UTIL_SYSTEM_SIGNAL_NAME_H

/* "KILL" of SIGKILL; NULL for a number that is none. */
const char *signal_name(int number);

#endif
