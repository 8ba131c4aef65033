#include "pendulum.h"

#include <math.h>

const char *pendulum_start(const double p[], double x[]) {
	if (!(p[M] > 0)) return "the mass m must be positive";
	if (!(p[L] > 0)) return "the length l must be positive";
	if (!(p[ALPHA] > 0)) return "the penalty alpha must be positive";
	x[X] = p[X_PIN] + p[L] * sin(p[THETA0]);
	x[Y] = -p[L] * cos(p[THETA0]);
	return 0;
}

void pendulum_right(const double p[], const double x[], const double f[2], double dx[]) {
	double m = p[M], l = p[L], alpha = p[ALPHA];
	double rx = x[X] - p[X_PIN], ry = x[Y], vx = x[V_X], vy = x[V_Y];
	double jx = rx / l, jy = ry / l, jj = jx * jx + jy * jy;
	double violation = (rx * rx + ry * ry - l * l) / (2 * l), rate = jx * vx + jy * vy;
	double wanted = (vx * vx + vy * vy) / l + 2 * p[XI] * p[OMEGA] * rate + p[OMEGA] * p[OMEGA] * violation;
	double ax = f[0] / m, ay = f[1] / m - p[G];
	/* (m I + alpha J^T J)^-1 by Sherman and Morrison. */
	for (int i = 0; i < 100; i++) {
		double error = alpha * (jx * ax + jy * ay + wanted) / (m + alpha * jj);
		double nx = ax - jx * error, ny = ay - jy * error;
		if (nx == ax && ny == ay) break;
		ax = nx;
		ay = ny;
	}
	dx[X] = vx;
	dx[Y] = vy;
	dx[V_X] = ax;
	dx[V_Y] = ay;
}
