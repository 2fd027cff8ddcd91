#include "analyzer/timeline/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS           12
#define HUBER            1.345
#define MAD              1.4826 /* median absolute deviation to standard deviation, of normal errors */
#define FIT_FEW          12     /* points, below which a median says less than a mean */
#define MOST_CORRELATION 0.97

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double median_of(double *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double fit_quantile(size_t points, int terms)
{
	static const double table[] = { 12.71, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23 };
	size_t freedom = points > (size_t)terms ? points - (size_t)terms : 0;
	if (freedom < sizeof(table) / sizeof(*table))
		return table[freedom];
	return 1.96 + 2.6 / (double)freedom;
}

static int terms_of(enum fit_shape shape)
{
	return shape == FIT_CONSTANT ? 1 : shape == FIT_LINE || shape == FIT_DECAY ? 2 : 3;
}

static void basis(const struct fit *f, double t, double b[3])
{
	b[0] = 1;
	b[1] = f->shape == FIT_CONSTANT ? 0 : f->shape == FIT_DECAY ? 1 - exp(-t / f->p) : t;
	b[2] = f->shape == FIT_CURVE ? t * t : f->shape == FIT_BEND && t > f->p ? t - f->p : 0;
}

static void basis_slope(const struct fit *f, double t, double b[3])
{
	b[0] = 0;
	b[1] = f->shape == FIT_CONSTANT ? 0 : f->shape == FIT_DECAY ? exp(-t / f->p) / f->p : 1;
	b[2] = f->shape == FIT_CURVE ? 2 * t : f->shape == FIT_BEND && t > f->p ? 1 : 0;
}

static double dot(const struct fit *f, const double b[3])
{
	return f->beta[0] * b[0] + f->beta[1] * b[1] + f->beta[2] * b[2];
}

static double error_of(const struct fit *f, const double b[3])
{
	double v = 0;
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			v += b[i] * f->cov[i][k] * b[k];
	return v > 0 ? sqrt(v) : 0;
}

double fit_value(const struct fit *f, double t)
{
	double b[3];
	basis(f, t, b);
	return dot(f, b);
}

double fit_slope(const struct fit *f, double t)
{
	double b[3];
	basis_slope(f, t, b);
	return dot(f, b);
}

double fit_value_error(const struct fit *f, double t)
{
	double b[3];
	basis(f, t, b);
	return error_of(f, b);
}

double fit_slope_error(const struct fit *f, double t)
{
	double b[3];
	basis_slope(f, t, b);
	return error_of(f, b);
}

/* Inverse of the symmetric k x k matrix in place, by Gauss and Jordan; 0 if it has none. */
static int invert(double m[3][3], int k)
{
	double inverse[3][3] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
	for (int c = 0; c < k; c++) {
		int pivot = c;
		for (int r = c + 1; r < k; r++)
			pivot = fabs(m[r][c]) > fabs(m[pivot][c]) ? r : pivot;
		if (fabs(m[pivot][c]) < 1e-12)
			return 0;
		for (int i = 0; i < 3; i++) {
			double a = m[c][i], b = inverse[c][i];
			m[c][i] = m[pivot][i], inverse[c][i] = inverse[pivot][i];
			m[pivot][i] = a, inverse[pivot][i] = b;
		}
		double d = m[c][c];
		for (int i = 0; i < 3; i++)
			m[c][i] /= d, inverse[c][i] /= d;
		for (int r = 0; r < k; r++) {
			double x = r == c ? 0 : m[r][c];
			for (int i = 0; i < 3 && x; i++)
				m[r][i] -= x * m[c][i], inverse[r][i] -= x * inverse[c][i];
		}
	}
	memcpy(m, inverse, sizeof(inverse));
	return 1;
}

/* One round of weighted least squares; leaves the inverse of the normal matrix in cov. */
static int solve(struct fit *f, const double *t, const double *y, const double *w, size_t n)
{
	double m[3][3] = { { 0 } }, v[3] = { 0 };
	for (size_t i = 0; i < n; i++) {
		double b[3];
		basis(f, t[i], b);
		for (int r = 0; r < f->terms; r++) {
			v[r] += w[i] * b[r] * y[i];
			for (int c = 0; c < f->terms; c++)
				m[r][c] += w[i] * b[r] * b[c];
		}
	}
	if (!invert(m, f->terms))
		return 0;
	memset(f->cov, 0, sizeof(f->cov));
	for (int r = 0; r < f->terms; r++) {
		f->beta[r] = 0;
		for (int c = 0; c < f->terms; c++) {
			f->beta[r] += m[r][c] * v[c];
			f->cov[r][c] = m[r][c];
		}
	}
	return 1;
}

static double scale_of(const double *residuals, size_t n, int terms)
{
	double *sizes = malloc(n * sizeof(*sizes)), squares = 0, scale;
	size_t freedom = n > (size_t)terms ? n - (size_t)terms : 1;
	for (size_t i = 0; i < n; i++)
		squares += residuals[i] * residuals[i];
	scale = sqrt(squares / (double)freedom);
	if (!sizes || n < FIT_FEW) {
		free(sizes);
		return scale;
	}
	for (size_t i = 0; i < n; i++)
		sizes[i] = fabs(residuals[i]);
	double robust = MAD * median_of(sizes, n) * sqrt((double)n / (double)freedom);
	free(sizes);
	return robust;
}

/* How much wider errors are than independent residuals would make them. What hangs together below `least` is but
 * rounding. */
static double inflation_of(const double *residuals, size_t n, double scale, double least)
{
	double same = 0, next = 0, most = 3 * scale;
	for (size_t i = 0; i < n && n >= FIT_FEW; i++) {
		double r = fmax(-most, fmin(most, residuals[i]));
		same += r * r;
		next += i ? r * fmax(-most, fmin(most, residuals[i - 1])) : 0;
	}
	same = fmax(same, least * least * (double)n);
	double rho = same > 0 ? next / same : 0;
	rho = rho < 0 ? 0 : rho > MOST_CORRELATION ? MOST_CORRELATION : rho;
	return sqrt((1 + rho) / (1 - rho));
}

void fit_make(struct fit *f, enum fit_shape shape, double p, const double *t, const double *y, size_t n, double least)
{
	*f = (struct fit){ .shape = shape, .terms = terms_of(shape), .p = p, .inflation = 1, .points = n };
	double *w = malloc((n + 1) * sizeof(*w)), *residuals = malloc((n + 1) * sizeof(*residuals));
	for (size_t i = 0; w && i < n; i++)
		w[i] = 1;
	for (int round = 0; w && residuals && round < ROUNDS && solve(f, t, y, w, n); round++) {
		for (size_t i = 0; i < n; i++)
			residuals[i] = y[i] - fit_value(f, t[i]);
		f->scale = scale_of(residuals, n, f->terms);
		for (size_t i = 0; i < n; i++) {
			double far = fabs(residuals[i]), limit = HUBER * f->scale;
			w[i] = n < FIT_FEW || far <= limit ? 1 : limit / far;
		}
	}
	double off = fmax(f->scale, least);
	f->inflation = residuals ? inflation_of(residuals, n, f->scale, least) : 1;
	for (int r = 0; r < 3; r++)
		for (int c = 0; c < 3; c++)
			f->cov[r][c] *= off * off * f->inflation * f->inflation;
	free(w);
	free(residuals);
}

double fit_loss(const struct fit *f, const double *t, const double *y, size_t n, double scale)
{
	double loss = 0;
	for (size_t i = 0; i < n && scale > 0; i++) {
		double r = (y[i] - fit_value(f, t[i])) / scale;
		loss += r * r > 9 ? 9 : r * r;
	}
	return loss;
}
