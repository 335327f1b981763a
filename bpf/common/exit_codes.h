/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exit_codes.h - numbers of the hardware and of KVM's interface by which BPF programs distinguish exits (Linux 7.2).
 */
#ifndef UNSPIN_BPF_COMMON_EXIT_CODES_H
#define UNSPIN_BPF_COMMON_EXIT_CODES_H

/* arch/x86/kvm/trace.h */
#define KVM_ISA_VMX 1
#define KVM_ISA_SVM 2
/* arch/x86/include/uapi/asm/svm.h */
#define SVM_EXIT_INTR 0x060
#define SVM_EXIT_PAUSE 0x077
#define SVM_EXIT_HLT 0x078
#define SVM_EXIT_VMMCALL 0x081
/* arch/x86/include/uapi/asm/vmx.h */
#define EXIT_REASON_EXTERNAL_INTERRUPT 1
#define EXIT_REASON_HLT 12
#define EXIT_REASON_VMCALL 18
#define EXIT_REASON_MSR_READ 31
#define EXIT_REASON_MSR_WRITE 32
#define EXIT_REASON_PAUSE_INSTRUCTION 40
/*
 * KVM's segment cache: SS (arch/x86/include/asm/kvm_host.h), whose access rights are the last of its four bits (enum of SEG_FIELD_*,
 * arch/x86/kvm/vmx/vmx.c), and the privilege level in these (arch/x86/include/asm/vmx.h).
 */
#define VCPU_SREG_SS 2
#define VMX_SEGMENT_CACHE_SS_AR (1u << (VCPU_SREG_SS * 4 + 3))
#define VMX_AR_DPL(ar) (((ar) >> 5) & 3)
/* include/uapi/linux/kvm_para.h */
#define KVM_HC_SCHED_YIELD 11
/* The privilege level of user mode. */
#define USER_CPL 3

#endif
