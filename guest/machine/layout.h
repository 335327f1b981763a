/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* layout.h - constants that assembly and C share: a vCPU's block, segment selectors, interrupt vectors. */
#ifndef UNSPIN_GUEST_LAYOUT_H
#define UNSPIN_GUEST_LAYOUT_H

#define VCPU_BYTES 16384
#define VCPU_RSP0 16 /* offset of task_state.rsp[0] in struct vcpu, where enter_user saves RSP for user_return */

#define SELECTOR_KERNEL_CODE 0x08
#define SELECTOR_KERNEL_DATA 0x10
#define SELECTOR_USER_DATA 0x1b
#define SELECTOR_USER_CODE 0x23
#define SELECTOR_TSS 0x28

#define VECTOR_EXCEPTIONS 32 /* 0..31 */
#define VECTOR_TICK 32
#define VECTOR_SHOOTDOWN 33
#define VECTOR_WAKE 34
#define VECTOR_WORK 35
#define VECTOR_SPURIOUS 47
#define VECTORS 48

/* Vectors for which the CPU pushes an error code: 8, 10 to 14, 17, 21, 29, 30 (SDM volume 3, 6.13; APM volume 2, 8.2). */
#define EXCEPTIONS_WITH_ERROR_CODE 0x60227d00
#define EXCEPTION_STUB_BYTES 16

/* Copies of values that abi/guest/memory.h defines in C only; boot.c asserts that they are equal. */
#define VCPUS_MAX 64
#define PANIC_PARAMETERS 1
#define PORT_PANIC 0x11
#define USER_STACK 0x500000
#define RFLAGS_USER 0x202     /* interrupts on */
#define RFLAGS_KERNEL_OFF 0x2 /* interrupts off */

#endif
