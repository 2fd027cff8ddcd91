/*
 * Will what grew go on growing? The one judgement of growth, made from cohorts (cohorts.h) of a site, of an owner, or
 * of all memory of a kind. Four questions, in this order:
 *
 *   Does it pass?      Of what was made, how much was still alive at each age (Kaplan and Meier 1958: what is alive has
 *                      not been seen to die)? Where next to nothing gets old it passes: a cache in balance, an epoch,
 *                      requests that come and go. Where what is freed gets older and more is alive all the time, more
 *                      comes than goes: a backlog
 *   Does it go on?     m cohorts that are old enough have survivors, and the last part g of the time has none. Had it
 *                      gone on, this would be so with a probability of (1 - g)^m. Where that is small it stopped: a
 *                      load, a warm-up. So it did where the rate has fallen to a small part. Few cohorts are too few
 *   Was it before?     Where all that had gathered was freed at once, again and again, what is alive has gathered since
 *                      the last time, and whether it will be freed as well no trace can tell
 *   Is anything freed? Of all that the process has made since then. If little is it only fills memory, and no trace can
 *                      tell a table that fills from a leak
 *
 * The numbers that decide are the constants at the head of outlook.c.
 */
#ifndef MT_DIAGNOSIS_GROWTH_OUTLOOK_H
#define MT_DIAGNOSIS_GROWTH_OUTLOOK_H

#include "analyzer/timeline/cohorts.h"
#include "analyzer/timeline/growth.h"

enum outlook {
	OUTLOOK_NONE = 0,  /* there is next to nothing */
	OUTLOOK_LEAKS,     /* it goes on, while other memory is freed */
	OUTLOOK_GROWS,     /* it goes on, and hardly anything is freed */
	OUTLOOK_BACKLOG,   /* more comes than goes, and waits ever longer */
	OUTLOOK_COLLECTED, /* it goes on in a heap that a collector manages: nobody sees what is freed there */
	OUTLOOK_STOPPED,
	OUTLOOK_PASSES,
	OUTLOOK_NEEDS_MORE, /* it passes, but more and more of it is there at once */
	OUTLOOK_GIVES_WAY,  /* it goes on, by pages of files that nobody has written to: the kernel can drop them */
	OUTLOOK_GATHERS,    /* it goes on, but all that came before was freed at once, again and again */
	OUTLOOK_SHORT,      /* too little was seen to say */
};

/* "leaks" */
const char *outlook_name(enum outlook o);

/* It will meet any limit if the program runs long enough, as far as a trace can tell. */
static inline bool outlook_goes_on(enum outlook o)
{
	return o >= OUTLOOK_LEAKS && o <= OUTLOOK_COLLECTED;
}

/* ... and what is freed of it is seen, so that the moment when memory ends can be foretold. */
static inline bool outlook_foretells(enum outlook o)
{
	return outlook_goes_on(o) && o != OUTLOOK_COLLECTED;
}

/* No leak is proven, and none is ruled out. */
static inline bool outlook_is_open(enum outlook o)
{
	return o == OUTLOOK_GROWS || o == OUTLOOK_GATHERS;
}

/* Cohorts with survivors: of fewer no leak, where other memory is freed, as a cache may take its last blocks late. */
enum { OUTLOOK_MANY = 8 };

/* What was found. Bytes are as of the track's end. */
struct outlook_found {
	enum outlook outlook;
	enum growth_certainty certainty;
	/* by which it has grown since cohort `from`; of a backlog all that waits */
	double bytes, blocks;
	double rise; /* by which more was alive at the end than in the middle, if it rose all the time; else 0 */
	unsigned from, count; /* cohorts: where growth began, and how many there are */
	unsigned members;     /* cohorts with survivors */
	bool ended;           /* there are none of late: it stopped, and has not only become slower */
	double freed;         /* part of what the process made since `from`, in any site, that is freed */
	double kept[COHORTS]; /* bytes that stay for good, of all cohorts up to that one */
};

/* `step`: stretches that a step takes, 0 = no steps are known. What is younger has not been through a whole one. */
struct outlook_found outlook_of(const struct cohort_table *t, const struct cohort_clock *clock, unsigned step);

/* The first of `count` stretches in which there is something; `count` = in none. */
unsigned outlook_begins(const struct cohort_table *t, unsigned count);

/* The end of a sentence that begins "what grew did so": why it is no leak. The caller frees it. */
char *outlook_why_no_leak(enum outlook o);

#endif
