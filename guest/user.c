/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* user.c - the one thing that runs at CPL 3, on the one page that is open to it. */
#include "../locks/parts/work.h"

/* guest.S enters it with the loops (1 or more) in ECX; it keeps what is callee-saved and needs no stack. */
__attribute__((naked, used, section(".user"))) void user_work(void)
{
	__asm__(UNSPIN_WORK_LOOP("%ecx") "\tsyscall\n\tud2");
}
