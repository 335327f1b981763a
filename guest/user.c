/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* user.c - the code that runs at CPL 3, in the one page that user mode may access. */
#include "../locks/parts/work.h"

/*
 * guest.S enters it with the number of loops (1 or more) in ECX. It preserves callee-saved registers and uses no stack.
 */
__attribute__((naked, used, section(".user"))) void user_work(void)
{
	__asm__(UNSPIN_WORK_LOOP("%ecx") "\tsyscall\n\tud2");
}
