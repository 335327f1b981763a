/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* panic.c - ends the guest after a fault, and injects the faults that tests ask for. */
#include "guest.h"

/* Uses nothing but its arguments, so it may be called before tables and GS are loaded. `vector` is below 256. */
_Noreturn void panic(enum unspin_guest_panic reason, unspin_u32 vector, unspin_u64 rip, unspin_u64 error)
{
	unspin_u64 cr2;

	interrupts_off();
	__asm__ volatile("mov %%cr2, %0" : "=r"(cr2));
	for (;;)
		__asm__ volatile("outl %%eax, %w1"
				 :
				 : "a"((unspin_u32)reason | vector << 8), "d"(UNSPIN_PORT_PANIC), "b"(rip), "c"(cr2),
				   "S"(error)
				 : "memory");
}

/* Called by guest.S for every exception: none is expected. */
_Noreturn void panic_exception(unspin_u64 vector, unspin_u64 error, unspin_u64 rip)
{
	panic(UNSPIN_PANIC_EXCEPTION, (unspin_u32)vector, rip, error);
}

/* Called on vCPU 0 after all vCPUs have started. UNSPIN_FAULT_EXCLUSION is handled in iteration.c. */
void inject_fault(enum unspin_guest_fault fault)
{
	static const struct {
		unspin_u16 limit;
		unspin_u64 base;
	} __attribute__((packed)) no_idt = {0, 0};

	if (fault == UNSPIN_FAULT_TRIPLE)
		__asm__ volatile("lidt %0\n\tud2"
				 :
				 : "m"(no_idt)); /* no gate for #UD, #GP or #DF, so the CPU shuts down */
	if (fault == UNSPIN_FAULT_EXCEPTION)
		__asm__ volatile("ud2");
}
