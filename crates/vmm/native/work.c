/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* work.c - the guest's work loop for the host, so that src/calibrate.rs times the very same instructions. */
#include "locks/parts/work.h"

void unspin_vmm_work(unspin_u32 loops);

/* Any caller; touches no memory. */
void unspin_vmm_work(unspin_u32 loops)
{
	work_loops(loops);
}
