/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * policies.h - every policy that steers, and how several are called together.
 *
 * UNSPIN_POLICIES is the one list: bit, function prefix, name on command lines, and at which events a policy is ASKED for
 * a decision or TOLD (on_slice_start). Those that are switched on are called in the order of the list; the first that does not
 * PASS decides. helping and gang have events of their own (on_help, on_call). No policy at all is `refuse-yields`.
 *
 * A user policy (`unspin policy new`) is one more, called before all of these. UNSPIN_USER_POLICY is its file,
 * which defines the four functions declared below under its own name (-Duser_on_yield=NAME_on_yield and so on). It is not
 * called at on_help and on_call.
 */
#ifndef UNSPIN_POLICY_STEERING_POLICIES_H
#define UNSPIN_POLICY_STEERING_POLICIES_H

#include "candidate.h"
#include "../contract.h"
#include "debooster.h"
#include "directed_yield.h"
#include "ecs.h"
#include "gang.h"
#include "helping.h"
#include "kernel_exit.h"
#include "lag_credit_buddy.h"
#include "loan.h"
#include "loan_cpl.h"
#include "refuse_yields.h"
#include "slice.h"
#include "yield_buddy.h"

#define UNSPIN_POLICIES(X)                                                                                             \
	/* bit, prefix, name, on_yield, on_slice_end, on_poll, on_slice_start */                                       \
	X(0, loan, "loan", ASKED, SILENT, ASKED, SILENT)                                                               \
	X(1, loan_cpl, "loan-cpl", ASKED, SILENT, ASKED, SILENT)                                                       \
	X(2, kernel_exit, "kernel-exit", SILENT, ASKED, ASKED, TOLD)                                                   \
	X(3, helping, "helping", SILENT, SILENT, SILENT, SILENT)                                                       \
	X(5, ecs, "ecs", SILENT, ASKED, ASKED, TOLD)                                                                   \
	X(6, ecs_give_back, "ecs-give-back", SILENT, ASKED, ASKED, TOLD)                                               \
	X(7, debooster, "debooster", ASKED, SILENT, SILENT, SILENT)                                                    \
	X(8, debooster_ancestor, "debooster-ancestor", ASKED, SILENT, SILENT, SILENT)                                  \
	X(10, lag_credit, "lag-credit", ASKED, SILENT, SILENT, SILENT)                                                 \
	X(9, yield_buddy, "yield-buddy", ASKED, SILENT, SILENT, SILENT)                                                \
	X(4, directed_yield, "directed-yield", ASKED, SILENT, SILENT, SILENT)                                          \
	X(11, gang, "gang", SILENT, SILENT, SILENT, SILENT)

enum unspin_policy_bit {
#define UNSPIN_POLICY_BIT(bit, prefix, ...) unspin_policy_##prefix = 1 << (bit),
	UNSPIN_POLICIES(UNSPIN_POLICY_BIT)
#undef UNSPIN_POLICY_BIT
};
/* Of a policy's memory in struct unspin_policy_memory; the bit's number. */
enum unspin_policy_index {
#define UNSPIN_POLICY_INDEX(bit, prefix, ...) unspin_policy_index_##prefix = (bit),
	UNSPIN_POLICIES(UNSPIN_POLICY_INDEX)
#undef UNSPIN_POLICY_INDEX
};
#define UNSPIN_POLICY_COUNT 12
#define UNSPIN_POLICY_ONE(...) +1
_Static_assert(UNSPIN_POLICIES(UNSPIN_POLICY_ONE) == UNSPIN_POLICY_COUNT, "policies are counted");
#undef UNSPIN_POLICY_ONE

/*
 * A rule of candidate.h is on, too: that rule, instead of KVM's, chooses the candidate of a spinner, and then the policies are
 * called for it (on_yield). A rule makes no other decision.
 */
#define UNSPIN_POLICY_CANDIDATES 0x1000u
/*
 * Samples are on, too (classify/spin_samples.h): one that finds a spinning vCPU is handled as a pause-loop exit, by that rule of
 * candidates or, where none is on, by KVM's present one.
 */
#define UNSPIN_POLICY_SPIN_SAMPLES 0x2000u

#define UNSPIN_POLICY_USER 0x80000000u /* the bit of a user's own */

/*
 * Those that read facts.order: its average_vtime, limit_vtime and runnable; its self_vtime and same_group; any of it; and in
 * on_yield facts.self, and more of facts.candidate than whether it is descheduled, awaited or awaits answers. While none of them is
 * on, the caller may leave that unknown, or 0.
 */
#define UNSPIN_POLICIES_OF_QUEUE (unspin_policy_lag_credit | UNSPIN_POLICY_USER)
#define UNSPIN_POLICIES_OF_SELF                                                                                        \
	(unspin_policy_debooster | unspin_policy_debooster_ancestor | unspin_policy_gang | UNSPIN_POLICY_USER)
#define UNSPIN_POLICIES_OF_ORDER (UNSPIN_POLICIES_OF_QUEUE | UNSPIN_POLICIES_OF_SELF)
/* Those under which a lock's waiters are lent to (slice.h). */
#define UNSPIN_POLICIES_THAT_LEND (unspin_policy_loan | unspin_policy_loan_cpl)
#define UNSPIN_POLICIES_OF_YIELDER (unspin_policy_loan_cpl | UNSPIN_POLICY_USER)
/* Those that decide about each yield, and not by facts.candidate.awaited. */
#define UNSPIN_POLICIES_WITHOUT_ANSWERS                                                                                \
	(unspin_policy_debooster | unspin_policy_debooster_ancestor | unspin_policy_lag_credit |                       \
	 unspin_policy_yield_buddy | unspin_policy_directed_yield)
#define UNSPIN_POLICIES_OF_CANDIDATE (unspin_policy_loan | unspin_policy_loan_cpl | UNSPIN_POLICY_USER)

/* Whether answer_may_be_awaited() can decide a yield to that candidate, of which all else is known that the host knows. */
UNSPIN_PURE _Bool policies_read_answers(unspin_u32 policies, const struct unspin_vcpu_facts *candidate)
{
	if (policies & UNSPIN_POLICY_USER)
		return 1;
	/* A lock's waiter is lent to first. */
	if (policies & unspin_policy_loan && fact_known(candidate->critical))
		return candidate->critical.value == 0;
	if (policies & unspin_policy_loan_cpl)
		return 1;
	return policies && !(policies & UNSPIN_POLICIES_WITHOUT_ANSWERS);
}

/*
 * How long a slice of a steered vCPU lasts under these policies; asked_ns, kernel_ns: of length_of_slice(); uses_locks:
 * unspin_uses_locks() of that vCPU.
 */
UNSPIN_PURE unspin_u64 policies_length_of_slice(unspin_u32 policies, unspin_u32 asked_ns, unspin_u64 kernel_ns,
						_Bool uses_locks)
{
	return length_of_slice(asked_ns, kernel_ns, uses_locks && policies & UNSPIN_POLICIES_THAT_LEND);
}

/* One vCPU's memory, a part for each policy. */
struct unspin_policy_memory {
	struct unspin_policy_state of[UNSPIN_POLICY_COUNT];
	struct unspin_policy_state user;
};

#ifdef UNSPIN_USER_POLICY
UNSPIN_PURE struct unspin_decision user_on_yield(const struct unspin_facts *facts, struct unspin_policy_state *state);
UNSPIN_PURE struct unspin_decision user_on_slice_end(const struct unspin_facts *facts,
						     struct unspin_policy_state *state);
UNSPIN_PURE struct unspin_decision user_on_poll(const struct unspin_facts *facts, struct unspin_policy_state *state);
UNSPIN_PURE void user_on_slice_start(const struct unspin_facts *facts, struct unspin_policy_state *state);
#include UNSPIN_USER_POLICY
#define UNSPIN_ASK_USER(event)                                                                                         \
	if (policies & UNSPIN_POLICY_USER) {                                                                           \
		decision = user_##event(facts, &memory->user);                                                         \
		if (decision.action != UNSPIN_PASS)                                                                    \
			return decision;                                                                               \
	}
#else
#define UNSPIN_ASK_USER(event)
#endif

/* What was asked; numbers stand in logs. */
enum unspin_policy_event {
	UNSPIN_ON_YIELD = 1,
	UNSPIN_ON_SLICE_END = 2,
	UNSPIN_ON_POLL = 3,
	UNSPIN_ON_HELP = 4,
	UNSPIN_ON_CALL = 5,
	UNSPIN_ON_SPIN = 6, /* which candidate: unspin_candidate_verdict() */
};

/* A decision with all that it followed from: the same functions called with it return the same, to the bit. */
struct unspin_decision_record {
	unspin_u64 time_ns;
	unspin_u32 thread;    /* self */
	unspin_u32 candidate; /* thread; 0: none */
	unspin_u32 event;     /* enum unspin_policy_event */
	unspin_u32 policies;  /* that were on */
	struct unspin_facts facts;
	struct unspin_policy_memory before, after;
	struct unspin_decision decision;
	unspin_u32 verdict; /* on_spin: UNSPIN_CANDIDATE_*, and what it followed from; otherwise 0 */
	struct unspin_spinner spinner;
	struct unspin_yield_facts seen;
	unspin_u32 unused;
};
UNSPIN_ASSERT_SIZE(struct unspin_decision_record, 544);

#define UNSPIN_EVENT_SILENT(prefix, event, bit)
#define UNSPIN_EVENT_ASKED(prefix, event, bit)                                                                         \
	if (policies & unspin_policy_##prefix) {                                                                       \
		decision = prefix##_##event(facts, &memory->of[bit]);                                                  \
		if (decision.action != UNSPIN_PASS)                                                                    \
			return decision;                                                                               \
	}
#define UNSPIN_EVENT_TOLD(prefix, event, bit)                                                                          \
	if (policies & unspin_policy_##prefix)                                                                         \
		prefix##_##event(facts, &memory->of[bit]);
#define UNSPIN_AT_YIELD(bit, prefix, name, yield, end, poll, start) UNSPIN_EVENT_##yield(prefix, on_yield, bit)
#define UNSPIN_AT_SLICE_END(bit, prefix, name, yield, end, poll, start) UNSPIN_EVENT_##end(prefix, on_slice_end, bit)
#define UNSPIN_AT_POLL(bit, prefix, name, yield, end, poll, start) UNSPIN_EVENT_##poll(prefix, on_poll, bit)
#define UNSPIN_AT_SLICE_START(bit, prefix, name, yield, end, poll, start)                                              \
	UNSPIN_EVENT_##start(prefix, on_slice_start, bit)

/*
 * self spins and KVM proposes the candidate. `policies`: bits of enum unspin_policy_bit; 0 is `refuse-yields`. Where none of those
 * that are on decides (a guest without pv pages, say), answer.h does for a vCPU that has not taken an interrupt, and otherwise KVM's
 * request is honoured as by directed_yield: refusing it would do that guest worse than the kernel's own scheduler does.
 */
UNSPIN_PURE struct unspin_decision policies_on_yield(unspin_u32 policies, const struct unspin_facts *facts,
						     struct unspin_policy_memory *memory)
{
	struct unspin_decision decision;

	UNSPIN_ASK_USER(on_yield)
	UNSPIN_POLICIES(UNSPIN_AT_YIELD)
	if (!policies)
		return refuse_yields_on_yield(facts, &memory->of[0]);
	if (answer_may_be_awaited(&facts->candidate))
		return answer_on_yield(facts);
	return directed_yield_on_yield(facts, &memory->of[unspin_policy_index_directed_yield]);
}

/*
 * self's guest calls for help, and the candidate might be run. helping chooses; where what the candidate does is known, loan
 * decides whether it is lent to at all; with loan-cpl, a vCPU in the kernel is lent to. Without helping none is.
 */
UNSPIN_PURE struct unspin_decision policies_on_help(unspin_u32 policies, const struct unspin_facts *facts,
						    struct unspin_policy_memory *memory)
{
	struct unspin_decision chosen, lent;

	if (!(policies & unspin_policy_helping))
		return unspin_decide(UNSPIN_REFUSE, 0);
	chosen = helping_on_help(facts, &memory->of[unspin_policy_index_helping]);
	if (chosen.action == UNSPIN_REFUSE)
		return chosen;
	if (policies & unspin_policy_loan) {
		lent = loan_on_yield(facts, &memory->of[unspin_policy_index_loan]);
		lent.rank = lent.action == UNSPIN_LEND ? chosen.rank : 0;
		if (lent.action != UNSPIN_PASS)
			return lent;
	}
	if (policies & unspin_policy_loan_cpl && fact_is(facts->candidate.mode, UNSPIN_FACT_KERNEL)) {
		chosen.action = UNSPIN_LEND;
		chosen.budget_ns = UNSPIN_BUDGET_NS;
	}
	return chosen;
}

/* self has begun a slice of its own, and the candidate, of its VM, waits. gang alone calls. */
UNSPIN_PURE struct unspin_decision policies_on_call(unspin_u32 policies, const struct unspin_facts *facts,
						    struct unspin_policy_memory *memory)
{
	if (!(policies & unspin_policy_gang))
		return unspin_decide(UNSPIN_REFUSE, 0);
	return gang_on_call(facts, &memory->of[unspin_policy_index_gang]);
}

/* self's slice is used up at a tick. */
UNSPIN_PURE struct unspin_decision policies_on_slice_end(unspin_u32 policies, const struct unspin_facts *facts,
							 struct unspin_policy_memory *memory)
{
	struct unspin_decision decision;

	UNSPIN_ASK_USER(on_slice_end)
	UNSPIN_POLICIES(UNSPIN_AT_SLICE_END)
	return unspin_decide(UNSPIN_PASS, 0);
}

/* self runs on a loan or a grant. */
UNSPIN_PURE struct unspin_decision policies_on_poll(unspin_u32 policies, const struct unspin_facts *facts,
						    struct unspin_policy_memory *memory)
{
	struct unspin_decision decision;

	UNSPIN_ASK_USER(on_poll)
	UNSPIN_POLICIES(UNSPIN_AT_POLL)
	return unspin_decide(UNSPIN_PASS, 0);
}
#undef UNSPIN_ASK_USER

/* Any of the above by its number; another number is a PASS. */
UNSPIN_PURE struct unspin_decision policies_decide(unspin_u32 event, unspin_u32 policies,
						   const struct unspin_facts *facts,
						   struct unspin_policy_memory *memory)
{
	if (event == UNSPIN_ON_YIELD)
		return policies_on_yield(policies, facts, memory);
	if (event == UNSPIN_ON_SLICE_END)
		return policies_on_slice_end(policies, facts, memory);
	if (event == UNSPIN_ON_POLL)
		return policies_on_poll(policies, facts, memory);
	if (event == UNSPIN_ON_HELP)
		return policies_on_help(policies, facts, memory);
	if (event == UNSPIN_ON_CALL)
		return policies_on_call(policies, facts, memory);
	return unspin_decide(UNSPIN_PASS, 0);
}

/* Whether a record's decision follows from the facts that it holds; `memory`: what is left of the record's `before`. */
static inline _Bool policies_replay(const struct unspin_decision_record *record, struct unspin_policy_memory *memory,
				    struct unspin_decision *decision)
{
	*decision = policies_decide(record->event, record->policies, &record->facts, memory);
	return record->verdict ==
	       (record->event == UNSPIN_ON_SPIN ? unspin_candidate_verdict(&record->spinner, &record->seen) : 0);
}

/* self begins a slice of its own. */
UNSPIN_PURE void policies_on_slice_start(unspin_u32 policies, const struct unspin_facts *facts,
					 struct unspin_policy_memory *memory)
{
#ifdef UNSPIN_USER_POLICY
	if (policies & UNSPIN_POLICY_USER)
		user_on_slice_start(facts, &memory->user);
#endif
	UNSPIN_POLICIES(UNSPIN_AT_SLICE_START)
}
#undef UNSPIN_AT_YIELD
#undef UNSPIN_AT_SLICE_END
#undef UNSPIN_AT_POLL
#undef UNSPIN_AT_SLICE_START
#undef UNSPIN_EVENT_SILENT
#undef UNSPIN_EVENT_ASKED
#undef UNSPIN_EVENT_TOLD

#endif
