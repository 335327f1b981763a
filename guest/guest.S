/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* guest.S - the entry point of vCPUs, entry to CPL 3 and return, interrupt entries, and the switch of stacks. */
#include "machine/layout.h"

	.text

/* Entry point of every vCPU: its number is in RDI, other registers are as abi/guest/memory.h says. */
	.globl _start64
_start64:
	rdtsc
	shlq	$32, %rdx
	orq	%rax, %rdx
	movq	%rdx, %rsi		/* guest_main's first_tsc */
	cmpq	$VCPUS_MAX, %rdi
	jae	1f
	movq	%rdi, %rax
	imulq	$VCPU_BYTES, %rax, %rax
	leaq	vcpu_blocks + VCPU_BYTES(%rax), %rsp
	xorl	%ebp, %ebp
	call	guest_main
	ud2
1:	movl	$PANIC_PARAMETERS, %eax	/* this vCPU has no stack, so panic() cannot be called */
	xorl	%ebx, %ebx
	xorl	%ecx, %ecx
	xorl	%esi, %esi
	movl	$PORT_PANIC, %edx
	outl	%eax, %dx
2:	hlt
	jmp	2b

/*
 * void enter_user(loops): runs user_work (user.c) at CPL 3 and returns when it executes SYSCALL. Callee-saved registers
 * are preserved, because user_work does not change them.
 */
	.globl enter_user
enter_user:
	movq	%rsp, %gs:VCPU_RSP0
	movl	%edi, %ecx
	pushq	$SELECTOR_USER_DATA
	pushq	$USER_STACK		/* not used: user_work needs no stack */
	pushq	$RFLAGS_USER
	pushq	$SELECTOR_USER_CODE
	pushq	$user_work
	iretq

/*
 * SYSCALL's target: returns to enter_user's caller. GS is the same in both modes, and each interrupt class has its own
 * stack, so an interrupt while RSP is still the user's does no harm.
 */
	.globl user_return
user_return:
	movq	%gs:VCPU_RSP0, %rsp
	ret

/* Calls a C handler with the struct interrupt_frame, which it may change. Saves the registers that C may clobber. */
.macro	interrupt	entry, handler
	.globl	\entry
\entry:
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	leaq	9 * 8(%rsp), %rdi	/* the frame is above 9 registers; 14 words in all keep RSP aligned for the call */
	call	\handler
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	iretq
.endm

	interrupt	entry_tick, handle_tick
	interrupt	entry_shootdown, handle_shootdown
	interrupt	entry_wake, handle_wake
	interrupt	entry_work, handle_work

/*
 * A tick returns here if another task is to run (task_tick()): on the interrupted task's stack, where its frame was
 * copied.
 */
	interrupt	preempted, task_preempted

/*
 * void stack_switch(unspin_u64 *save_rsp, unspin_u64 load_rsp): returns on the other stack, to the caller of the
 * stack_switch() that left it; task_create() (task.c) lays out a new task's stack as if it had called.
 */
	.globl stack_switch
stack_switch:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret

/* A spurious interrupt needs no EOI and is ignored. */
	.globl entry_spurious
entry_spurious:
	iretq

/*
 * Exceptions: 32 stubs of EXCEPTION_STUB_BYTES. Each pushes its vector, and before it 0 if the CPU pushes no error
 * code.
 */
	.p2align 4
	.globl exception_stubs
exception_stubs:
	.set	vector, 0
	.rept	VECTOR_EXCEPTIONS
	.p2align 4
	.if	(EXCEPTIONS_WITH_ERROR_CODE >> vector) & 1
	.else
	pushq	$0
	.endif
	pushq	$vector
	jmp	exception
	.set	vector, vector + 1
	.endr

exception:
	popq	%rdi			/* vector */
	popq	%rsi			/* error code */
	movq	(%rsp), %rdx		/* RIP */
	andq	$-16, %rsp
	call	panic_exception
	ud2
