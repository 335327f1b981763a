// SPDX-License-Identifier: MIT OR Apache-2.0
// A clock that stands still, in the place of the C library's, for Bochs.
//
// Bochs has a timer that follows the host's clock, also when nothing of the machine uses it ("Null Timer #2",
// iodev/virt_timer.cc, 3.0). When it is due depends on gettimeofday(); a string instruction moves no more bytes at once than
// are left until the next timer (cpu/faststring.cc), and that decides how instructions of several CPUs interleave: no two runs
// of a machine with two CPUs were the same. It also seeds rand() with time().

#include <stddef.h>

struct timeval {
	long tv_sec;
	long tv_usec;
};

// 1 January 2026, 00:00 UTC, as the machine's own clock begins.
#define STANDS_AT 1767225600L

int gettimeofday(struct timeval *now, void *zone)
{
	(void)zone;
	now->tv_sec = STANDS_AT;
	now->tv_usec = 0;
	return 0;
}

long time(long *now)
{
	if (now != NULL) {
		*now = STANDS_AT;
	}
	return STANDS_AT;
}
