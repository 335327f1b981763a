/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel_types.h - the kernel types that the BPF programs read, declared by hand with only the fields used.
 *
 * preserve_access_index makes the loader find each field in the running kernel's BTF, so the offsets of these
 * declarations do not matter. The part of a name after ___ is a flavour (libbpf): the same kernel type as another
 * version has it. Names: Linux 7.2.
 */
#ifndef UNSPIN_BPF_COMMON_KERNEL_TYPES_H
#define UNSPIN_BPF_COMMON_KERNEL_TYPES_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;

#define NULL ((void *)0)

/* include/uapi/linux/bpf.h: user-space interface, stable. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_ANY = 0,	       /* bpf_map_update_elem */
	BPF_NOEXIST = 1,       /* the same */
	BPF_F_NO_PREALLOC = 1, /* map_flags */
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,	 /* bpf_ringbuf_submit */
	CLOCK_MONOTONIC = 1,	 /* bpf_timer_init */
	BPF_F_TIMER_CPU_PIN = 2, /* bpf_timer_start: on the CPU that calls it; Linux 6.7 and later */
};

/* include/uapi/linux/bpf.h */
struct bpf_timer {
	u64 __opaque[2];
} __attribute__((aligned(8)));

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* arch/x86/include/asm/ptrace.h */
struct pt_regs {
	unsigned long r10;
	unsigned long ax;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
};

struct bpf_local_storage;
struct task_struct {
	int pid;
	int tgid;
	struct bpf_local_storage *bpf_storage;
};

/* What a program of type iter/task gets (kernel/bpf/task_iter.c, include/linux/bpf.h). */
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task; /* NULL after the last one */
};

/* include/linux/rbtree_types.h */
struct rb_node {
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};
struct rb_root {
	struct rb_node *rb_node;
};

/* include/linux/kvm_host.h, since 5.17 */
struct kvm_memory_slot {
	struct rb_node gfn_node[2];
	u64 base_gfn;
	unsigned long npages;
	unsigned long userspace_addr;
};
struct kvm_memslots {
	struct rb_root gfn_tree;
	int node_idx;
};
struct kvm {
	struct kvm_memslots *memslots[2];
	int created_vcpus;
};
/* arch/x86/include/asm/kvm_host.h */
enum kvm_reg {
	VCPU_REG_SEGMENTS = 22,
};
enum kvm_reg___before_7_2 {
	VCPU_EXREG_SEGMENTS = 22,
};
struct kvm_lapic;
struct kvm_vcpu_arch {
	unsigned long regs[17];	     /* by enum kvm_reg, RAX first */
	unsigned long regs_avail[1]; /* bits by enum kvm_reg: read from the VMCS since the last exit */
	_Bool guest_state_protected;
	_Bool preempted_in_kernel;
	struct kvm_lapic *apic;
};
struct kvm_vcpu_arch___before_7_2 {
	u32 regs_avail;
};
struct kvm_vcpu {
	struct kvm *kvm;
	int vcpu_id;
	int vcpu_idx;	/* below created_vcpus */
	bool preempted; /* its thread lost the CPU while runnable, and has not run since */
	struct kvm_vcpu_arch arch;
};

/* arch/x86/kvm/lapic.h */
struct kvm_lapic {
	struct kvm_vcpu *vcpu;
	_Bool irr_pending; /* false: there is none; true: there may be one */
	void *regs;	   /* the APIC's page, 4 KiB */
};

/* arch/x86/include/asm/svm.h, arch/x86/kvm/svm/svm.h. struct vcpu_svm begins with its struct kvm_vcpu. */
struct vmcb_control_area {
	u32 exit_code;
	u16 pause_filter_count;
};
struct vmcb_save_area {
	u8 cpl;
	u64 rip;
	u64 rax;
	u64 cr3;
};
struct vmcb {
	struct vmcb_control_area control;
	struct vmcb_save_area save;
};
struct vcpu_svm {
	struct vmcb *vmcb;
};

/* arch/x86/kvm/vmx/vmx.h, common.h. struct vcpu_vmx begins with its struct kvm_vcpu. */
union vmx_exit_reason {
	u32 full;
};
struct vcpu_vt {
	union vmx_exit_reason exit_reason;
};
struct kvm_save_segment {
	u32 ar;
};
struct vcpu_vmx {
	struct vcpu_vt vt;
	unsigned int ple_window;
	struct {
		u32 bitmask; /* which fields of which segments were read: 4 bits each */
		struct kvm_save_segment seg[8];
	} segment_cache;
};
struct vcpu_vmx___before_6_15 {
	union vmx_exit_reason exit_reason;
};

#pragma clang attribute pop

/*
 * kernel/bpf/helpers.c: returns the pointer, typed so that loads through it read 0 where memory is not mapped. Type 0
 * (any memory) is allowed since Linux 6.17; on older kernels no call is reached.
 */
extern void *bpf_rdonly_cast(const void *pointer, u32 type) __attribute__((section(".ksyms"), weak));

#endif
