/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* guest.S - the first instruction, the way to CPL 3 and back, and what leads from an interrupt to its C handler. */
#include "machine/layout.h"

	.text

/* Entry of every vCPU: its number in RDI, the rest as abi/guest/memory.h says. */
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
1:	movl	$PANIC_PARAMETERS, %eax	/* no stack for it, so panic() is out of reach */
	xorl	%ebx, %ebx
	xorl	%ecx, %ecx
	xorl	%esi, %esi
	movl	$PORT_PANIC, %edx
	outl	%eax, %dx
2:	hlt
	jmp	2b

/*
 * void enter_user(loops): runs user_work (user.c) at CPL 3 and returns when that does SYSCALL. Like any function it may
 * clobber what is not callee-saved; user_work keeps the rest.
 */
	.globl enter_user
enter_user:
	movq	%rsp, %gs:VCPU_RSP0
	movl	%edi, %ecx
	pushq	$SELECTOR_USER_DATA
	pushq	$USER_STACK		/* never used: user_work needs none */
	pushq	$RFLAGS_USER
	pushq	$SELECTOR_USER_CODE
	pushq	$user_work
	iretq

/*
 * Where SYSCALL leads: back to enter_user's caller. GS is the same in both modes, and every interrupt has a stack of
 * its own, so nothing can go wrong while RSP is still the user's.
 */
	.globl user_return
user_return:
	movq	%gs:VCPU_RSP0, %rsp
	ret

/* A handler in C with the struct interrupt_frame as its argument, which it may change; what C may clobber is saved. */
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
	leaq	9 * 8(%rsp), %rdi	/* behind 9 registers; 14 words in all keep RSP aligned for the call */
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

/* Where a tick goes back to when another task is to run (task.c): on the interrupted task's stack, whose frame lies there. */
	interrupt	preempted, task_preempted

/*
 * void stack_switch(unspin_u64 *save_rsp, unspin_u64 load_rsp): returns on the other stack, to its caller there; a new
 * task's stack is laid out as if there were one (task.c, task_create).
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

/* Exceptions: 32 stubs of EXCEPTION_STUB_BYTES, each pushes its vector; 0 stands in where the CPU pushes no error code. */
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
