/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * pv_page_map.h - how a VMM gives its guest pages of steer's map `guest_pages` as memory, for the pv pages of pv_page.h to lie in: then
 * the scheduler reads and writes them as memory of its own, also where a kernel that is locked down lets BPF write no other.
 *
 * The guest needs no change, and registers its pv pages as usual. The VMM, before the guest runs:
 *  1. offers a page to one of its own addresses by prctl(UNSPIN_PRCTL_OFFER_PAGE, number, address, nonce), an option that the
 *     kernel does not implement, so the call returns EINVAL;
 *  2. has it if the lower half of `guest_owners`[number] is the nonce, a random number above 0; else it tries the next number;
 *  3. maps that page of `guest_pages` there (MAP_SHARED | MAP_FIXED, offset number * 4096) and clears it.
 * After the guest's end it unmaps the page and calls prctl(UNSPIN_PRCTL_RETURN_PAGE, number, address). The pages of a process that
 * has ended may be taken by the next. A page belongs to one VM and has no data of another. Pages of a scheduler that has ended
 * stay memory; the next scheduler reads them as any guest's.
 *
 * A process that can open the map can write all pages: the host's VMMs must trust one another; guests see the page of their own VM
 * only. An address is a claim: a VMM that has mapped something else there misleads the scheduler about its own VM, and no other.
 */
#ifndef UNSPIN_ABI_BPF_PV_PAGE_MAP_H
#define UNSPIN_ABI_BPF_PV_PAGE_MAP_H

#include "../guest/pv_page.h"

#define UNSPIN_PV_PAGE_BYTES 4096u
#define UNSPIN_PV_STRUCTS_PER_PAGE 32u
_Static_assert(UNSPIN_PV_STRUCTS_PER_PAGE * sizeof(struct unspin_pv_page) == UNSPIN_PV_PAGE_BYTES,
	       "pv_page fill their page");

/* Pages of `guest_pages`, and so VMs of 32 vCPUs: 1 MiB. */
#define UNSPIN_PV_PAGES_MAX 256u

#define UNSPIN_PRCTL_OFFER_PAGE 0x554e0002u
#define UNSPIN_PRCTL_RETURN_PAGE 0x554e0003u

#endif
