/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * calibration.c - a guest that contains no lock: each of its programs does one thing so many times and says how many TSC
 * cycles that took. src/calibration.rs runs them. Loaded and started as the micro guest is (abi/guest/memory.h), with its waiting
 * loop; of its memory map only parameters (pause_every_spins) and statistics' pages are used, these for requests.
 */
#define UNSPIN_PLATFORM_HEADER "../../guest/platform_guest.h"
#include "locks/platform/contract.h"
#include "locks/parts/work.h"

/* In the page of a vCPU's statistics; twin of `REQUEST_*` in src/calibration.rs. */
struct request {
	unspin_u32 program; /* enum program, from the VMM */
	unspin_u32 count;   /* how often, from the VMM; above 0 */
	unspin_u64 cycles;  /* what it took, from the guest */
	unspin_u64 gaps;    /* GAPS: how many there were */
};

/* Twin of `Program` in src/calibration.rs. */
enum program {
	WORK,	   /* spins of the work loop */
	WAIT,	   /* spins of a waiting loop, a PAUSE at every k-th as in the parameters */
	CPUID,	   /* exits that KVM answers itself */
	WBINVD,	   /* the same; KVM does nothing there */
	HYPERCALL, /* with a number that KVM does not know */
	SEND,	   /* an IPI to itself, interrupts off: it stays pending */
	INTERRUPT, /* the same and its handler */
	HALT,	   /* the same, and a HLT that it ends at once */
	ADD,	   /* atomic additions to a word of its own */
	NOTHING,   /* the loop around these, so that it can be taken off */
	GAPS,	   /* looks at the TSC: time that went to gaps of at least `GAP_CYCLES` between two */
};

#define GAP_CYCLES                                                                                                     \
	4000u /* TSC: far above a look and above a spin of the emulated testbed, below an interrupt of the host */
#define VECTOR 64u

union vcpu_block vcpu_blocks[UNSPIN_GUEST_VCPUS_MAX];
static struct gate idt[VECTOR + 1];
static const unspin_u64 gdt[3] = {0, 0x00af9b000000ffffull, 0x00cf93000000ffffull};

void handler(void);

/* The first instruction, and an interrupt handler that only says it is done. */
__asm__(".text\n"
	".globl _start64\n"
	"_start64:\n"
	"	movq	%rdi, %rax\n"
	"	imulq	$16384, %rax, %rax\n" /* VCPU_BYTES, asserted below */
	"	leaq	vcpu_blocks + 16384(%rax), %rsp\n"
	"	xorl	%ebp, %ebp\n"
	"	call	calibration_main\n"
	"	ud2\n"
	".globl handler\n"
	"handler:\n"
	"	pushq	%rax\n"
	"	pushq	%rcx\n"
	"	pushq	%rdx\n"
	"	movl	$0x80b, %ecx\n" /* MSR_X2APIC_EOI */
	"	xorl	%eax, %eax\n"
	"	xorl	%edx, %edx\n"
	"	wrmsr\n"
	"	popq	%rdx\n"
	"	popq	%rcx\n"
	"	popq	%rax\n"
	"	iretq\n");
_Static_assert(VCPU_BYTES == 16384 && MSR_X2APIC_EOI == 0x80b, "the numbers in the assembly above");

/* Called by the waiting loop where the micro guest notes stalls: never, notice_at_spins is out of reach. */
void wait_noticed(struct vcpu *self)
{
	(void)self;
}

static void set_up(unspin_u64 number)
{
	struct vcpu *self = vcpu_of((unspin_u32)number);
	unspin_u64 to = (unspin_u64)handler;
	struct {
		unspin_u16 limit;
		unspin_u64 base;
	} __attribute__((packed)) table = {sizeof(gdt) - 1, (unspin_u64)gdt};

	__asm__ volatile("lgdt %0" : : "m"(table));
	/* A 64-bit interrupt gate (SDM volume 3, 6.14.1): present, type 14, on the present stack. */
	idt[VECTOR].low = (to & 0xffff) | SELECTOR_KERNEL_CODE << 16 | 0x8e00ull << 32 | (to >> 16 & 0xffff) << 48;
	idt[VECTOR].high = to >> 32;
	table.limit = sizeof(idt) - 1;
	table.base = (unspin_u64)idt;
	__asm__ volatile("lidt %0" : : "m"(table));
	self->self = self;
	self->statistics = (void *)(UNSPIN_GUEST_STATISTICS + number * UNSPIN_GUEST_STATISTICS_STRIDE + 4096);
	self->iteration.notice_at_spins = ~0ull;
	wrmsr(MSR_GS_BASE, (unspin_u64)self);
	wrmsr(MSR_X2APIC_SPURIOUS, APIC_SOFTWARE_ENABLED | VECTOR_SPURIOUS);
	wrmsr(MSR_X2APIC_TPR, 0);
}

static void send_to_self(unspin_u64 number)
{
	wrmsr(MSR_X2APIC_ICR, number << 32 | VECTOR);
}

static void wait_spins(unspin_u32 spins)
{
	static struct platform_word word;

	this_vcpu()->spins_until_pause = PARAMETERS->pause_every_spins;
	platform_wait_while(&word, 0, spins);
}

static void gaps(struct request *request)
{
	unspin_u64 last = rdtsc(), in_gaps = 0, gaps = 0;

	for (unspin_u32 i = 0; i < request->count; i++) {
		unspin_u64 now = rdtsc();

		if (now - last >= GAP_CYCLES) {
			in_gaps += now - last;
			gaps++;
		}
		last = now;
	}
	request->cycles = in_gaps;
	request->gaps = gaps;
}

/* One of the programs that are done one by one. */
static void step(unspin_u32 program, unspin_u64 number, _Bool by_vmmcall)
{
	static unspin_u32 own;

	switch (program) {
	case CPUID:
		cpuid(0);
		break;
	case WBINVD:
		__asm__ volatile("wbinvd" : : : "memory");
		break;
	case HYPERCALL:
		hypercall(by_vmmcall, ~0u, 0, 0);
		break;
	case SEND:
		send_to_self(number);
		break;
	case INTERRUPT:
		send_to_self(number);
		__asm__ volatile("sti\n\tnop\n\tcli" : : : "memory");
		break;
	case HALT:
		send_to_self(number);
		halt_until_interrupt();
		break;
	case NOTHING:
		break;
	case ADD:
		__atomic_fetch_add(&own, 1, __ATOMIC_RELAXED);
		break;
	}
}

static void perform(struct request *request, unspin_u64 number, _Bool by_vmmcall)
{
	unspin_u64 begin = rdtsc();
	unspin_u32 count = request->count, program = request->program;

	if (program == GAPS) {
		gaps(request);
		return;
	}
	if (program == WORK)
		work_loops(count);
	else if (program == WAIT)
		wait_spins(count);
	else
		while (count--)
			step(program, number, by_vmmcall);
	request->cycles = rdtsc() - begin;
	if (program == SEND) /* Take what is pending, so that the next program does not. */
		__asm__ volatile("sti\n\tnop\n\tcli" : : : "memory");
}

/* Each entry after an OUT is a new request. */
void calibration_main(unspin_u64 number)
{
	struct request *request = (void *)(UNSPIN_GUEST_STATISTICS + number * UNSPIN_GUEST_STATISTICS_STRIDE);
	_Bool by_vmmcall = cpuid(0).ecx == 0x444d4163; /* "cAMD" of AuthenticAMD */

	set_up(number);
	for (;;) {
		perform(request, number, by_vmmcall);
		__asm__ volatile("outl %0, %1" : : "a"(0), "Nd"((unspin_u16)UNSPIN_PORT_DONE) : "memory");
	}
}
