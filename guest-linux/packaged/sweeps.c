// SPDX-License-Identifier: GPL-2.0-only
/*
 * sweeps - the load "openmp": Jacobi sweeps over a square grid, one parallel loop and its barrier a sweep, as many threads as the
 * machine has CPUs. With OMP_WAIT_POLICY=active libgomp's threads spin at each barrier, in user mode; how long a run takes then
 * follows from how long the last thread of each sweep did not run.
 *
 * Usage: sweeps COUNT, 1..1000000; prints "Time: SECONDS", or fails with a line when the grid is not what sweeps leave behind.
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE 128 /* 128 KiB a grid; a sweep of one thread is some 10 us, the grain of a fine parallel loop */

static double grid[2][SIDE][SIDE];

/* One sweep from a grid into the other; the largest change of a cell. */
static double sweep(double (*from)[SIDE], double (*to)[SIDE])
{
	double largest = 0;

#pragma omp parallel for reduction(max : largest) schedule(static)
	for (int row = 1; row < SIDE - 1; row++) {
		for (int column = 1; column < SIDE - 1; column++) {
			double mean = (from[row - 1][column] + from[row + 1][column] + from[row][column - 1] +
				       from[row][column + 1]) /
				      4;
			double change = fabs(mean - from[row][column]);

			to[row][column] = mean;
			largest = change > largest ? change : largest;
		}
	}
	return largest;
}

int main(int count, char **words)
{
	long sweeps = count == 2 ? strtol(words[1], NULL, 10) : 0;
	double last = INFINITY, begin;

	if (sweeps < 1 || sweeps > 1000000) {
		fputs("usage: sweeps COUNT\n", stderr);
		return 2;
	}
	for (int row = 0; row < SIDE; row++)
		grid[0][row][0] = grid[1][row][0] = 1;
	begin = omp_get_wtime();
	for (long i = 0; i < sweeps; i++) {
		double change = sweep(grid[i % 2], grid[(i + 1) % 2]);

		/* Sweeps contract in the maximum norm: only a thread that read what another was still writing breaks that. */
		if (!(change <= last * (1 + 1e-12))) {
			fputs("sweeps: a sweep changed more than the one before it\n", stderr);
			return 1;
		}
		last = change;
	}
	printf("Time: %.6f\n", omp_get_wtime() - begin);
	return 0;
}
