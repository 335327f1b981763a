/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vcpus.bpf.h - the facts about vCPUs, and which guests are notified.
 *
 * A thread is a vCPU's once it enters a guest (kvm_entry, with interrupts off, on that thread). Its guest's pv page
 * (abi/guest/pv_page.h) is read and written only while that thread is current: then the address is valid in the current address space.
 * Writing (scheduler/guest/notify.bpf.h) is bpf_probe_write_user(): so any VMM and any VM that runs already can be steered, and the
 * scheduler can be attached and detached at any time. A kernel locked down for integrity lets no program call it (kernel/trace/bpf_trace.c, Linux
 * 7.2): then only guests whose VMM has put pages of our map into their memory are notified (pv_page_map.bpf.h).
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_VCPUS_H
#define UNSPIN_BPF_SCHEDULER_GUEST_VCPUS_H

#include "../../common/exits.bpf.h"
#include "../../common/guest_memory.bpf.h"
#include "audit.bpf.h"
#include "critical.bpf.h"
#include "mode.bpf.h"
#include "pv_page_map.bpf.h"
#include "../slices.bpf.h"

#include "../../../abi/bpf/events.h"

/* The guest's page up to the host's words about it; the order is that of struct unspin_pv_page. */
struct pv_page_words {
	u32 magic;
	u32 critical;
	u32 others[10];
	u32 non_preemptable;
	u32 preemptable;
};
_Static_assert(sizeof(struct pv_page_words) == __builtin_offsetof(struct unspin_pv_page, vcpu_preempted) &&
		       __builtin_offsetof(struct pv_page_words, non_preemptable) ==
			       __builtin_offsetof(struct unspin_pv_page, non_preemptable_ecs_count),
	       "as in abi/guest/pv_page.h");

/* Only what is read of it. */
static __always_inline void copy_pv_page(struct pv_page_words *words, const volatile struct unspin_pv_page *pv_page)
{
	words->magic = pv_page->magic;
	words->critical = pv_page->critical;
	words->non_preemptable = pv_page->non_preemptable_ecs_count;
	words->preemptable = pv_page->preemptable_ecs_count;
}

/* The guest's page as it is now, if p is current; a page that has gone away is not read. */
static __always_inline bool read_pv_page(struct task_struct *p, const struct task_context *task,
					 struct pv_page_words *words)
{
	const struct unspin_pv_page *mapped;

	if (!task->pv_page || bpf_get_current_task_btf() != p || scheduled(p)->flags & PF_EXITING)
		return false;
	mapped = pv_page_in_map(task);
	if (mapped)
		copy_pv_page(words, mapped);
	else if (bpf_probe_read_user(words, sizeof(*words), (void *)task->pv_page)) /* fails instead of faulting */
		words->magic = 0;
	if (words->magic == UNSPIN_PV_PAGE_MAGIC)
		return true;
	count(unspin_steer_pv_page_failures, 1);
	audit_count(page_failures);
	return false;
}

/*
 * Refreshes what is known of p, which runs or has just been running. Returns 0. Not inlined, and not static: the verifier
 * then walks it once, and not at each place that calls it.
 */
__attribute__((noinline)) int refresh_facts(struct task_struct *p __arg_trusted,
					    struct task_context *task __arg_nonnull)
{
	struct pv_page_words words = {};
	u32 mode = mode_of(task), sections;

	task->mode = mode == UNSPIN_MODE_UNKNOWN ? UNSPIN_UNKNOWN_FACT : (struct unspin_fact){mode, 0};
	task->sections = UNSPIN_UNKNOWN_FACT;
	if (!read_pv_page(p, task, &words)) {
		task->critical = critical_unsaid(p, task);
		return 0;
	}
	task->critical = (struct unspin_fact){words.critical, 0};
	sections = unspin_ecs_sections(words.non_preemptable, words.preemptable);
	task->by_class |= sections != 0;
	if (task->by_class)
		task->sections = (struct unspin_fact){sections, 0};
	return 0;
}

/*
 * The same when it leaves its CPU, for as long as it is off it; while no policy is on, only for vCPUs whose guests give
 * pv pages, for their statistics.
 */
static __always_inline void remember(struct task_struct *p, struct task_context *task)
{
	if (task->choice.policies || task->pv_page) {
		refresh_facts(p, task);
	} else {
		task->mode = UNSPIN_UNKNOWN_FACT;
		task->critical = UNSPIN_UNKNOWN_FACT;
		task->sections = UNSPIN_UNKNOWN_FACT;
	}
}

/* In a critical section as of refresh_facts(), as eCS counts them. */
static __always_inline bool is_critical(const struct task_context *task)
{
	struct unspin_vcpu_facts self = {.critical = task->critical, .sections = task->sections};

	return unspin_ecs_is_critical(&self);
}

/* Whether its guest is notified of anything at all. */
static __always_inline bool is_notified(const struct task_context *task)
{
	return task->pv_page && task->disclosure != UNSPIN_DISCLOSE_NOTHING && (options.writes_memory || task->offer);
}

static __always_inline struct unspin_fact aged(struct unspin_fact fact, u32 age_ns)
{
	return fact_known(fact) ? (struct unspin_fact){fact.value, age_ns} : UNSPIN_UNKNOWN_FACT;
}

/* Whether it waits for a CPU, and since when. */
static __always_inline struct unspin_fact descheduled(const struct task_context *task, u64 now_ns)
{
	return fact_seen(!task->on_cpu && task->counted, task->left_ns, now_ns);
}

/* Whether it waits for answers in its slice or did in its last. */
static __always_inline struct unspin_fact awaits_lately(const struct task_context *task)
{
	return (struct unspin_fact){task->answer_slices, 0};
}

/* All that is known of one vCPU; seen_ns: when refresh_facts() ran. */
static __always_inline void gather(struct unspin_vcpu_facts *facts, const struct task_context *task, u64 seen_ns,
				   u64 now_ns)
{
	u32 age_ns = fact_seen(0, seen_ns, now_ns).age_ns;

	facts->critical = aged(task->critical, age_ns);
	facts->sections = aged(task->sections, age_ns);
	facts->mode = aged(task->mode, age_ns);
	facts->descheduled = descheduled(task, now_ns);
	facts->yielded = task->yielded_ns ? fact_seen(1, task->yielded_ns, now_ns) : UNSPIN_UNKNOWN_FACT;
	facts->spun = fact_seen(task->spun, now_ns, now_ns);
	facts->borrows = fact_seen(task->borrow_kind != UNSPIN_BORROWS_NOTHING, task->borrowed_since_ns, now_ns);
	facts->near = UNSPIN_UNKNOWN_FACT;
	facts->awaited = UNSPIN_UNKNOWN_FACT;
	facts->awaits = awaits_lately(task);
}

/* It spins, and that vCPU is proposed. */
static __always_inline void note_answers(struct task_context *task, const struct unspin_vcpu_facts *candidate)
{
	if (answer_may_be_awaited(candidate))
		task->answer_slices = UNSPIN_ANSWER_SLICES;
}

/* The same of one that may be off its CPU. */
static __always_inline void gather_other(struct unspin_vcpu_facts *facts, const struct task_context *task, u64 now_ns)
{
	gather(facts, task, task->left_ns, now_ns);
	if (!bpf_core_type_exists(struct vcpu_svm)) /* where it does, the mode is known: ops.yield is called often */
		facts->mode = aged(mode_left_in(task), facts->descheduled.age_ns);
}

/* The same of p, which might run here instead of the task that does. */
static __always_inline void gather_candidate(struct unspin_vcpu_facts *facts, struct task_struct *p,
					     const struct task_context *task, u64 now_ns)
{
	bool near = task_cpu(p) == (s32)bpf_get_smp_processor_id();

	gather_other(facts, task, now_ns);
	facts->near = (struct unspin_fact){near, facts->descheduled.age_ns};
}

/* Facts of the slice that the vCPU here has; nothing is known of the order. */
static __always_inline void facts_of_slice(struct unspin_facts *facts, const struct task_context *task, u64 now_ns)
{
	facts->slice_ns = slice_of(task);
	facts->slice_left_ns = unspin_slice_left(task->slice_end_ns, now_ns);
	facts->recent_ns = task->choice.recent_ns;
	facts->threshold_ns = task->choice.threshold_ns;
	order_is_unknown(&facts->order);
}

/* The same with those of the vCPU itself; seen_ns: when refresh_facts() ran. */
static __always_inline void facts_of_self(struct unspin_facts *facts, const struct task_context *task, u64 seen_ns,
					  u64 now_ns)
{
	gather(&facts->self, task, seen_ns, now_ns);
	facts_of_slice(facts, task, now_ns);
}

/* p, the current thread, serves that vCPU. */
static __always_inline void learn_vcpu(struct task_struct *p, struct task_context *task, struct kvm_vcpu *vcpu)
{
	begin_audit();
	task->vcpu = (u64)vcpu;
	task->page = 0;
	task->vm = (u64)vcpu->kvm;
	task->vm_generation = destroyed;
	task->pv_page = 0;
	task->offer = 0;
	task->borrowed_is_set = 0;
	task->by_class = 0;
	choose_policies_of(p, task);
}

/* Whether the task that runs here, on a loan or a grant, shall leave now. */
static __always_inline bool done_with_it(struct task_struct *p, struct task_context *task, u64 now_ns)
{
	struct unspin_facts facts = {};

	refresh_facts(p, task);
	vcpu_is_unknown(&facts.candidate);
	facts_of_self(&facts, task, now_ns, now_ns);
	return decide(UNSPIN_ON_POLL, p, task, &facts, 0, now_ns).action == UNSPIN_GIVE_BACK;
}

/* The current task's slice ends as soon as interrupts are on. */
static __always_inline void end_slice(struct task_struct *p)
{
	scx_bpf_task_set_slice(p, 0);
	scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_PREEMPT);
}

/* It gives its CPU to the task that is next then. */
static __always_inline void leave(struct task_struct *p, struct task_context *task)
{
	task->yielding = 1;
	end_slice(p);
}

#endif
