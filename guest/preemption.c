/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * preemption.c - the ground truth of preemptions: in which critical sections this vCPU was when the host descheduled it
 * (eCS's classes, policy/classify/ecs_class.h, ruling 23).
 *
 * KVM adds to the steal time whenever it enters a vCPU that had waited for a CPU. The steal time is read before each
 * change of the class counters: its growth since the last read was stolen while the counters had their present values.
 */
#include "guest.h"
#include "../policy/classify/ecs_class.h"

_Static_assert(UNSPIN_GUEST_ECS_CLASSES == UNSPIN_ECS_CLASSES &&
		       sizeof(struct unspin_ecs_counters) == sizeof(((struct unspin_pv_page *)0)->class_count),
	       "abi/ and policy/classify/ecs_class.h differ");

/*
 * Accounts for steal time that has grown to stolen_ns. An interrupt handler may have accounted for it first: then this
 * does nothing.
 */
void preemption_count(struct vcpu *self, unspin_u64 stolen_ns)
{
	struct unspin_guest_statistics *statistics = self->statistics;
	const struct unspin_ecs_counters *counters =
		(const struct unspin_ecs_counters *)pv_page_of(self->number)->class_count;
	unspin_u64 seen_ns = __atomic_load_n(&self->seen_stolen_ns, __ATOMIC_RELAXED);
	unspin_u32 class = unspin_ecs_class(counters), classes = unspin_ecs_classes(counters);

	if (stolen_ns <= seen_ns || !__atomic_compare_exchange_n(&self->seen_stolen_ns, &seen_ns, stolen_ns, 0,
								 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	statistics->preempted[class]++;
	statistics->preempted_ns[class] += stolen_ns - seen_ns;
	for (unsigned i = 0; i < UNSPIN_ECS_CLASSES; i++)
		statistics->preempted_in[i] += classes >> i & 1;
}
