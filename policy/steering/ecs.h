/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * ecs.h - eCS (Kashyap, Min and Kim, ATC 2018): a vCPU in a critical section gets one extra schedule at the end of its slice.
 *
 * Section 3 and ruling 22: when the scheduler is about to take the pCPU at a slice boundary and one of the guest's counters
 * (ecs_class.h) is above 0, the vCPU runs on for 1 ms at most, once: at the end of the extra schedule it leaves, whatever its
 * counters say. "Never twice in a row": the next one may come in its next slice. The penalty is local: the extra time is
 * charged to the vCPU like any other, so the fair scheduler runs others for longer afterwards.
 *
 * The paper's form (`ecs`) reads nothing but the counters, ends at the first tick or timer after 1 ms, and does not
 * protect a vCPU that a wake-up preempts. Nothing is given back, so the guest is not notified. `ecs_give_back` is ours: the
 * guest is notified, and the vCPU leaves when its counters come to 0; its rows are separate. Unknown counters: PASS.
 *
 * Which counters: the paper's two sums (Figure 2) where the guest counts by them: vCPUs that are inside of something. A guest
 * that never did, and keeps the loan's `critical` only, is judged by that word: there a vCPU that waits for a lock is protected, too.
 */
#ifndef UNSPIN_POLICY_STEERING_ECS_H
#define UNSPIN_POLICY_STEERING_ECS_H

#include "../contract.h"
#include "../model/inefficiency.h"

/* The paper's two sums together; a guest may write anything. */
UNSPIN_PURE unspin_u32 unspin_ecs_sections(unspin_u32 non_preemptable, unspin_u32 preemptable)
{
	return non_preemptable > ~preemptable ? ~0u : non_preemptable + preemptable;
}

/* Critical sections as eCS counts them. */
UNSPIN_PURE struct unspin_fact unspin_ecs_counted(const struct unspin_vcpu_facts *self)
{
	return fact_known(self->sections) ? self->sections : self->critical;
}

/* Known to be in one. */
UNSPIN_PURE _Bool unspin_ecs_is_critical(const struct unspin_vcpu_facts *self)
{
	struct unspin_fact counted = unspin_ecs_counted(self);

	return fact_known(counted) && counted.value != 0;
}

/* state->words[0]: extra schedules in this slice. */
UNSPIN_PURE void ecs_on_slice_start(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	(void)facts;
	state->words[0] = 0;
}

UNSPIN_PURE struct unspin_decision ecs_on_slice_end(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	if (state->words[0] || !unspin_ecs_is_critical(&facts->self))
		return unspin_decide(UNSPIN_PASS, 0);
	state->words[0] = 1;
	return unspin_decide(UNSPIN_EXTEND, UNSPIN_BUDGET_NS);
}

UNSPIN_PURE struct unspin_decision ecs_on_poll(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	(void)facts;
	(void)state;
	return unspin_decide(UNSPIN_PASS, 0);
}

UNSPIN_PURE void ecs_give_back_on_slice_start(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	ecs_on_slice_start(facts, state);
}

UNSPIN_PURE struct unspin_decision ecs_give_back_on_slice_end(const struct unspin_facts *facts,
							      struct unspin_policy_state *state)
{
	struct unspin_decision decision = ecs_on_slice_end(facts, state);

	if (decision.action == UNSPIN_EXTEND)
		decision.action = UNSPIN_GRANT;
	return decision;
}

UNSPIN_PURE struct unspin_decision ecs_give_back_on_poll(const struct unspin_facts *facts,
							 struct unspin_policy_state *state)
{
	(void)state;
	return unspin_decide(fact_is(unspin_ecs_counted(&facts->self), 0) ? UNSPIN_GIVE_BACK : UNSPIN_PASS, 0);
}

/* How well it did (ruling 22), of one VM or vCPU. Zeroes to begin with. */
struct unspin_ecs_account {
	unspin_u64 boundaries; /* slice boundaries reached while a counter was above 0: the extra schedule's end, too */
	unspin_u64 descheduled; /* of them those at which it lost the pCPU */
	unspin_u64 by_wakeup; /* preempted by a wake-up meanwhile: no boundary, and not protected by the paper's form */
};
UNSPIN_ASSERT_SIZE(struct unspin_ecs_account, 24);

/* Avoided share in parts per million, or UNSPIN_UNKNOWN when there was no boundary. */
static inline unspin_u64 unspin_ecs_avoided_ppm(const struct unspin_ecs_account *account)
{
	unspin_u64 lost_ppm;

	if (account->boundaries == 0 || account->descheduled > account->boundaries)
		return UNSPIN_UNKNOWN;
	lost_ppm = unspin_scale(account->descheduled, 1000000, account->boundaries);
	return lost_ppm == UNSPIN_UNKNOWN ? UNSPIN_UNKNOWN : 1000000 - lost_ppm;
}

/*
 * What the host publishes to the guest, written when the vCPU is scheduled in and out and at ticks (ruling 24): whether another
 * runnable task could run on this pCPU now. `others`: such tasks in its queue.
 */
static inline unspin_u32 unspin_pcpu_overloaded(unspin_u32 others)
{
	return others != 0;
}

/*
 * Whether a waiter for a blocking lock continues to spin; otherwise it sleeps in the guest (section 4, ruling 24). SchdSpin:
 * while its guest run queue holds one task, itself. eSchdSpin: and while its pCPU is not overloaded.
 */
static inline _Bool unspin_schd_spins(unspin_u32 guest_tasks)
{
	return guest_tasks <= 1;
}

static inline _Bool unspin_eschd_spins(unspin_u32 guest_tasks, unspin_u32 pcpu_overloaded)
{
	return unspin_schd_spins(guest_tasks) && !pcpu_overloaded;
}

#endif
