/*
 * Robust least squares with up to three terms:
 *
 *   y = beta[0] + beta[1] * f(t) + beta[2] * g(t)
 *
 * t is between 0 and 1 for the given points. Points far off (an evaluation, a checkpoint) count less (Huber's weights).
 * Errors are those of the parameters; they are widened where residuals of neighbouring points are correlated.
 */
#ifndef MT_TIMELINE_FIT_H
#define MT_TIMELINE_FIT_H

#include <stddef.h>

enum fit_shape {
	FIT_CONSTANT, /* 1 */
	FIT_LINE,     /* 1, t */
	FIT_CURVE,    /* 1, t, t^2 */
	FIT_BEND,     /* 1, t, max(0, t - p): two lines that meet at p */
	FIT_DECAY,    /* 1, 1 - exp(-t / p): a cache that fills */
};

struct fit {
	enum fit_shape shape;
	int terms;
	double p;
	double beta[3];
	double cov[3][3]; /* of beta */
	double scale;     /* robust standard deviation of the residuals */
	double inflation; /* factor on the errors for correlated residuals; already in cov */
	size_t points;
};

/* Fits `n` points. Errors are computed as if each point was off by `least`, or by more if residuals are larger. */
void fit_make(struct fit *f, enum fit_shape shape, double p, const double *t, const double *y, size_t n, double least);

double fit_value(const struct fit *f, double t);
double fit_slope(const struct fit *f, double t);
double fit_value_error(const struct fit *f, double t); /* standard error of the curve itself */
double fit_slope_error(const struct fit *f, double t);

/* Sum of squared residuals in units of `scale`; a single point counts at most 9. */
double fit_loss(const struct fit *f, const double *t, const double *y, size_t n, double scale);

/* Two-sided 95 % quantile of Student's distribution. */
double fit_quantile(size_t points, int terms);

double median_of(double *values, size_t n); /* reorders them */

#endif
