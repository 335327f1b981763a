/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * guest_memory.bpf.h - translates a guest-physical address to one in the VMM's process, by which guest memory is read
 * and written while one of the VM's threads is current.
 */
#ifndef UNSPIN_BPF_COMMON_GUEST_MEMORY_H
#define UNSPIN_BPF_COMMON_GUEST_MEMORY_H

#include "kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define PAGE_BYTES 4096ull
#define DEEPEST_SLOT 30 /* a red-black tree of 32,764 slots (KVM_USER_MEM_SLOTS) is at most 2 log2(32,765) deep */

/*
 * Address in the VMM's process of a guest-physical address; 0 if no memory slot has it. `vcpu` is a struct kvm_vcpu *
 * of the VM. A search as in search_memslots() (include/linux/kvm_host.h). Neither inlined nor static, so that the
 * verifier checks it once and not at each call.
 */
__attribute__((noinline)) u64 host_address(u64 vcpu, u64 guest_physical)
{
	/* Before Linux 5.17 slots were no tree: no address. */
	if (!bpf_core_field_exists(struct kvm_memslots, gfn_tree))
		return 0;

	struct kvm_memslots *slots =
		BPF_CORE_READ((struct kvm_vcpu *)vcpu, kvm, memslots[0]); /* [1]: system management mode's */
	u32 tree = BPF_CORE_READ(slots, node_idx) & 1;
	struct rb_node *node = BPF_CORE_READ(slots, gfn_tree.rb_node);
	u64 page = guest_physical / PAGE_BYTES;

	/*
	 * Safe reads: a tree that changes during the walk gives no address, or a wrong one, where the magic number is
	 * missing.
	 */
	for (int i = 0; i < DEEPEST_SLOT && node; i++) {
		struct kvm_memory_slot *slot = (void *)node - bpf_core_field_offset(struct kvm_memory_slot, gfn_node) -
					       tree * bpf_core_type_size(struct rb_node);
		u64 first = BPF_CORE_READ(slot, base_gfn);

		if (page < first)
			node = BPF_CORE_READ(node, rb_left);
		else if (page - first >= BPF_CORE_READ(slot, npages))
			node = BPF_CORE_READ(node, rb_right);
		else
			return BPF_CORE_READ(slot, userspace_addr) + (guest_physical - first * PAGE_BYTES);
	}
	return 0;
}

#endif
