/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* boot.c - a vCPU's set-up before its first iteration and its end after the last. */
#include "guest.h"

union vcpu_block vcpu_blocks[UNSPIN_GUEST_VCPUS_MAX];

_Static_assert(VCPUS_MAX == UNSPIN_GUEST_VCPUS_MAX && PANIC_PARAMETERS == UNSPIN_PANIC_PARAMETERS &&
		       PORT_PANIC == UNSPIN_PORT_PANIC,
	       "layout.h and abi/guest/memory.h differ");
_Static_assert(UNSPIN_GUEST_IMAGE == 0x200000 && UNSPIN_GUEST_USER == 0x400000 && USER_STACK > UNSPIN_GUEST_USER &&
		       USER_STACK <= UNSPIN_GUEST_USER + 0x200000,
	       "link.ld and abi/guest/memory.h differ");

/* guest.S */
extern const unspin_u8 exception_stubs[VECTOR_EXCEPTIONS][EXCEPTION_STUB_BYTES];
extern const unspin_u8 entry_tick[], entry_shootdown[], entry_wake[], entry_work[], entry_spurious[], user_return[];

/* An interrupt gate: entered with interrupts off, by hardware or from CPL 0 only. */
static struct gate gate(const unspin_u8 *handler, enum interrupt_stack stack)
{
	unspin_u64 address = (unspin_u64)handler;

	return (struct gate){
		.low = (address & 0xffff) | (unspin_u64)SELECTOR_KERNEL_CODE << 16 | (stack + 1ull) << 32 |
		       0x8eull << 40 | (address >> 16 & 0xffff) << 48,
		.high = address >> 32,
	};
}

/* Vectors without a gate (36 to 46) raise #NP, those beyond the table #GP: both end in panic_exception. */
static void fill_idt(struct vcpu *self)
{
	for (unsigned vector = 0; vector < VECTOR_EXCEPTIONS; vector++) {
		enum interrupt_stack stack = vector == 2   ? STACK_NMI
					     : vector == 8 ? STACK_DOUBLE_FAULT
							   : STACK_EXCEPTION;

		self->idt[vector] = gate(exception_stubs[vector], stack);
	}
	self->idt[VECTOR_TICK] = gate(entry_tick, STACK_TICK);
	self->idt[VECTOR_SHOOTDOWN] = gate(entry_shootdown, STACK_IPI);
	self->idt[VECTOR_WAKE] = gate(entry_wake, STACK_IPI);
	self->idt[VECTOR_WORK] = gate(entry_work, STACK_IPI);
	self->idt[VECTOR_SPURIOUS] = gate(entry_spurious, STACK_IPI);
}

/* SYSCALL takes CS from STAR's bits 32 to 47, and SS 8 above it. SYSRET is not used; no flag is masked. */
static void load_syscall(void)
{
	wrmsr(MSR_STAR, (unspin_u64)SELECTOR_KERNEL_CODE << 32);
	wrmsr(MSR_LSTAR, (unspin_u64)user_return);
	wrmsr(MSR_SYSCALL_MASK, 0);
}

static void fill_gdt(struct vcpu *self)
{
	unspin_u64 base = (unspin_u64)&self->task_state;

	for (unsigned i = 0; i < INTERRUPT_STACKS; i++)
		self->task_state.ist[i] = (unspin_u64)self->interrupt_stacks[i + 1];
	self->task_state.io_map_offset = sizeof(self->task_state);
	self->gdt[SELECTOR_KERNEL_CODE / 8] = 0x00af9b000000ffffull;
	self->gdt[SELECTOR_KERNEL_DATA / 8] = 0x00cf93000000ffffull;
	self->gdt[SELECTOR_USER_DATA / 8] = 0x00cff3000000ffffull;
	self->gdt[SELECTOR_USER_CODE / 8] = 0x00affb000000ffffull;
	/* 64-bit TSS, available: type 9, present; two entries long. */
	self->gdt[SELECTOR_TSS / 8] =
		(sizeof(self->task_state) - 1) | (base & 0xffffff) << 16 | 0x89ull << 40 | (base >> 24 & 0xff) << 56;
	self->gdt[SELECTOR_TSS / 8 + 1] = base >> 32;
}

struct table_pointer {
	unspin_u16 limit;
	unspin_u64 base;
} __attribute__((packed));

static void load_tables(struct vcpu *self)
{
	struct table_pointer gdt = {sizeof(self->gdt) - 1, (unspin_u64)self->gdt};
	struct table_pointer idt = {sizeof(self->idt) - 1, (unspin_u64)self->idt};

	__asm__ volatile(
		"lgdt %0\n\t"
		"pushq %2\n\t"
		"leaq 1f(%%rip), %%rax\n\t"
		"pushq %%rax\n\t"
		"lretq\n"
		"1:\tmovl %3, %%ss\n\t"
		"movl %3, %%ds\n\t"
		"movl %3, %%es\n\t"
		"movl %4, %%fs\n\t"
		"movl %4, %%gs\n\t"
		"ltr %w5\n\t"
		"lidt %1"
		:
		: "m"(gdt), "m"(idt), "i"(SELECTOR_KERNEL_CODE), "r"(SELECTOR_KERNEL_DATA), "r"(0), "r"(SELECTOR_TSS)
		: "rax", "memory");
	wrmsr(MSR_GS_BASE, (unspin_u64)self); /* after the GS selector, whose load clears the base */
}

static _Bool parameters_valid(unspin_u32 number)
{
	const struct unspin_guest_parameters *p = PARAMETERS;

	return p->magic == UNSPIN_GUEST_MAGIC && p->version == UNSPIN_GUEST_VERSION && p->vcpus >= 1 &&
	       p->vcpus <= UNSPIN_GUEST_VCPUS_MAX && number < p->vcpus && p->lock_kind < UNSPIN_LOCK_KIND_COUNT &&
	       p->locks <= UNSPIN_GUEST_LOCKS_MAX && p->pause_every_spins >= 1 && p->pause_every_spins <= 65536 &&
	       p->tick_hz <= 10000 && (p->tick_hz == 0 || p->apic_timer_hz >= p->tick_hz) &&
	       (unspin_u64)p->vcpus * p->log_records * sizeof(struct unspin_guest_wait) <= UNSPIN_GUEST_LOG_BYTES &&
	       p->fault_injection < UNSPIN_FAULTS && p->pv_page <= 1 && p->tasks_per_vcpu >= 1 &&
	       p->tasks_per_vcpu <= UNSPIN_GUEST_TASKS_PER_VCPU_MAX &&
	       p->vcpus * p->tasks_per_vcpu <= UNSPIN_GUEST_TASKS_MAX && p->workload < UNSPIN_WORKLOADS &&
	       p->reader_percent <= 100;
}

static void fill_vcpu(struct vcpu *self, unspin_u32 number, unspin_u64 first_tsc)
{
	self->self = self;
	self->number = number;
	self->statistics = (struct unspin_guest_statistics *)(unspin_u64)(UNSPIN_GUEST_STATISTICS +
									  number * UNSPIN_GUEST_STATISTICS_STRIDE);
	self->log = (struct unspin_guest_wait *)UNSPIN_GUEST_LOG + (unspin_u64)number * PARAMETERS->log_records;
	self->iteration.random = random_start(PARAMETERS->seed, number);
	self->spins_until_pause = PARAMETERS->pause_every_spins;
	self->iteration.iterations_until_shootdown = PARAMETERS->shootdown_every_iterations;
	self->iteration.iterations_until_wakeup = PARAMETERS->wakeup_every_iterations;
	self->statistics->first_instruction_tsc = first_tsc;
}

/* Counters of barrier(): vCPUs whose APICs take IPIs; vCPUs that have no iteration left. */
static unspin_u32 vcpus_up, vcpus_finished;

_Noreturn void guest_main(unspin_u32 number, unspin_u64 first_tsc)
{
	struct vcpu *self = vcpu_of(number);

	if (!parameters_valid(number))
		panic(UNSPIN_PANIC_PARAMETERS, 0, 0, 0);
	fill_vcpu(self, number, first_tsc);
	fill_gdt(self);
	fill_idt(self);
	load_tables(self);
	load_syscall();
	apic_start();
	park_start(self);
	tasks_start(self);
	pv_page_start(self);
	if (number == 0) {
		locks_prepare();
		workload_prepare();
	}
	barrier(self, &vcpus_up);

	if (number == 0)
		inject_fault(PARAMETERS->fault_injection);
	apic_start_tick();
	iterations_run(self);
	tasks_finish(self);
	self->statistics->done_tsc = rdtsc();
	set_state(self, UNSPIN_STATE_DONE);

	barrier(self, &vcpus_finished); /* until then others may need this vCPU's answers to shootdowns */
	interrupts_off();
	self->statistics->steal_ns = steal_time_ns(self);
	for (;;)
		__asm__ volatile("outl %0, %w1" : : "a"(0), "d"(UNSPIN_PORT_DONE) : "memory");
}
