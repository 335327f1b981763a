/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pv_page_map.bpf.h - pv pages of guests that lie in a map of ours, because their VMM has put pages of it into guest memory
 * (abi/bpf/pv_page_map.h). No read of them can fail, and no write needs bpf_probe_write_user().
 *
 * An offer names which page lies at which address of the VMM's process. It is used when the guest registers pv pages there, and
 * only as long as its page is still that offer's. The pv pages are at that address with or without an offer: a guest
 * whose offer is lost, or was made to an earlier scheduler, is read and written as any other.
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_PV_PAGE_MAP_H
#define UNSPIN_BPF_SCHEDULER_GUEST_PV_PAGE_MAP_H

#include "../process_threads.bpf.h"

#include "../../../abi/bpf/pv_page_map.h"

#ifdef UNSPIN_STEER_DRY
/* A dry run takes no offers: pv pages are read where the guest has them. */
static __always_inline struct unspin_pv_page *pv_page_in_map(const struct task_context *task)
{
	return NULL;
}
#else

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNSPIN_PV_PAGES_MAX *UNSPIN_PV_STRUCTS_PER_PAGE);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct unspin_pv_page);
} guest_pages SEC(".maps");

/* By page: the offer that has it, its process in the upper half and its nonce in the lower; 0: none's. VMMs read it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNSPIN_PV_PAGES_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, u64);
} guest_owners SEC(".maps");

/* Where a page lies, as its VMM has offered it. */
struct offer_place {
	u64 host_page; /* address in that process, in pages */
	u64 process;
};

struct offer {
	u64 owner; /* what stands in guest_owners while it is good */
	u64 page;
};

/*
 * Those of processes that have ended stay until they make room: should a process get such a one's number and address and offer
 * nothing itself, its guest's pv pages are searched for in a page that is free, and found without a magic.
 */
struct {
	__uint(type, STEER_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4 * UNSPIN_PV_PAGES_MAX);
	__type(key, struct offer_place);
	__type(value, struct offer);
} offers SEC(".maps");

/* The pv pages of a vCPU's guest, if they are in the map; NULL: they are not, or the page was returned. */
static __always_inline struct unspin_pv_page *pv_page_in_map(const struct task_context *task)
{
	u32 slot = task->slot, page = slot / UNSPIN_PV_STRUCTS_PER_PAGE;
	u64 *owner;

	if (!task->offer)
		return NULL;
	/* In bounds: array maps refuse an index beyond their end. */
	owner = bpf_map_lookup_elem(&guest_owners, &page);
	return owner && *owner == task->offer ? bpf_map_lookup_elem(&guest_pages, &slot) : NULL;
}

static __always_inline void place_of(struct offer_place *place, u64 host_address)
{
	place->host_page = host_address / UNSPIN_PV_PAGE_BYTES;
	place->process = bpf_get_current_pid_tgid() >> 32;
}

/* The current thread's guest has registered its pv pages, which lie at task->pv page: in the map, if its VMM has offered that. */
static __always_inline void find_offer(struct task_context *task)
{
	struct offer_place place;
	struct offer *offer;
	bool had = task->offer;

	task->offer = 0;
	/* A struct that does not lie where the map has one cannot be the map's. */
	if (!task->pv_page || task->pv_page % sizeof(struct unspin_pv_page))
		return;
	place_of(&place, task->pv_page);
	offer = bpf_map_lookup_elem(&offers, &place);
	if (!offer)
		return;
	task->slot = offer->page * UNSPIN_PV_STRUCTS_PER_PAGE +
		     task->pv_page % UNSPIN_PV_PAGE_BYTES / sizeof(struct unspin_pv_page);
	task->offer = offer->owner;
	count(unspin_steer_pv_pages_in_map, !had);
}

/* The current process has that page from now on, and offers it at that address, unless another process that exists has it. */
static __always_inline void offer_page(u32 page, u64 host_address, u32 nonce)
{
	u64 *owner = bpf_map_lookup_elem(&guest_owners, &page), had;
	struct offer_place place;
	struct offer offer;

	if (!owner || !nonce || host_address % UNSPIN_PV_PAGE_BYTES)
		return;
	had = *owner;
	if (had && is_alive(had >> 32))
		return;
	place_of(&place, host_address);
	offer = (struct offer){place.process << 32 | nonce, page};
	if (__sync_val_compare_and_swap(owner, had, offer.owner) == had)
		bpf_map_update_elem(&offers, &place, &offer, 0);
}

/* The current process gives a page back that it has offered at that address. */
static __always_inline void return_page(u32 page, u64 host_address)
{
	u64 *owner = bpf_map_lookup_elem(&guest_owners, &page);
	struct offer_place place;
	struct offer *offer;

	place_of(&place, host_address);
	offer = bpf_map_lookup_elem(&offers, &place);
	if (!owner || !offer || offer->page != page)
		return;
	__sync_val_compare_and_swap(owner, offer->owner, 0);
	bpf_map_delete_elem(&offers, &place);
}

/*
 * Any process may: a page that it cannot map is of no use to it, and if it takes them all the VMs that come next have their pv pages
 * in memory of their own.
 */
SEC("fentry/__x64_sys_prctl")
int BPF_PROG(on_prctl_of_page, const struct pt_regs *arguments)
{
	u64 option = BPF_CORE_READ(arguments, di), page = BPF_CORE_READ(arguments, si);
	u64 host_address = BPF_CORE_READ(arguments, dx), nonce = BPF_CORE_READ(arguments, r10);

	if (option == UNSPIN_PRCTL_OFFER_PAGE)
		offer_page(page, host_address, nonce);
	else if (option == UNSPIN_PRCTL_RETURN_PAGE)
		return_page(page, host_address);
	return 0;
}
#endif

#endif
