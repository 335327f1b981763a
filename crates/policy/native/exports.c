/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* exports.c - see exports.h. */
#include "exports.h"

void unspin_export_add_candidate(struct unspin_ple_facts *facts, const struct unspin_ple_candidate *candidate,
				 unspin_u32 spinner_mode)
{
	unspin_ple_add_candidate(facts, candidate, spinner_mode);
}

unspin_u32 unspin_export_is_halted(const struct unspin_ple_candidate *candidate)
{
	return unspin_ple_is_halted(candidate);
}

unspin_u32 unspin_export_outcome(const struct unspin_ple_facts *facts)
{
	return unspin_ple_outcome(facts);
}

unspin_u32 unspin_export_reason(const struct unspin_ple_reason_facts *facts)
{
	return unspin_ple_reason(facts);
}

_Bool unspin_export_may_wait_for_answers(unspin_u32 ipi, unspin_u32 vector)
{
	return unspin_may_wait_for_answers(ipi, vector);
}

unspin_u32 unspin_export_symbol_of(const char *symbol)
{
	return unspin_ple_symbol_of(symbol);
}

unspin_u32 unspin_export_linux_vector(unspin_u32 vector)
{
	return unspin_linux_vector(vector);
}

unspin_u64 unspin_export_run_end(struct unspin_ple_run *run)
{
	return unspin_ple_run_end(run);
}

unspin_u64 unspin_export_run_add(struct unspin_ple_run *run, const struct unspin_ple_run_exit *exit, unspin_u32 rule)
{
	return unspin_ple_run_add(run, exit, rule);
}

void unspin_export_run_count(struct unspin_ple_run_shares *shares, unspin_u64 exits, unspin_u64 vcpus)
{
	unspin_ple_run_count(shares, exits, vcpus);
}

_Bool unspin_export_epoch_add_exit(struct unspin_epoch *epoch, unspin_u32 window)
{
	return unspin_epoch_add_exit(epoch, window);
}

unspin_u64 unspin_export_inefficiency_ppm(const struct unspin_epoch *epoch, unspin_u64 unit_ps)
{
	return unspin_inefficiency_ppm(epoch, unit_ps);
}

_Bool unspin_export_window_is_honoured(unspin_u64 inside_ns, unspin_u64 units, unspin_u64 least_unit_ps)
{
	return unspin_window_is_honoured(inside_ns, units, least_unit_ps);
}

_Bool unspin_export_exit_counts(unspin_u32 bound, unspin_u32 exit, unspin_u32 waits_for_lock)
{
	return unspin_exit_counts(bound, exit, waits_for_lock);
}

_Bool unspin_export_window_is_quicker(unspin_u64 inside_ns, unspin_u64 units, unspin_u64 quickest_ns,
				      unspin_u64 quickest_units)
{
	return unspin_window_is_quicker(inside_ns, units, quickest_ns, quickest_units);
}

unspin_u64 unspin_export_window_unit_ps(unspin_u64 inside_ns, unspin_u64 units, unspin_u64 least_unit_ps)
{
	return unspin_window_unit_ps(inside_ns, units, least_unit_ps);
}

unspin_u32 unspin_export_window_after_exit(const struct unspin_window_rule *rule, unspin_u32 window, unspin_u32 desired)
{
	return unspin_window_after_exit(rule, window, desired);
}

unspin_u32 unspin_export_window_after_switch(const struct unspin_window_rule *rule, unspin_u32 window)
{
	return unspin_window_after_switch(rule, window);
}

void unspin_export_pause_entered(const struct unspin_pause_hardware *hardware, struct unspin_pause_loop *loop)
{
	unspin_pause_entered(hardware, loop);
}

unspin_u64 unspin_export_pause_exits(const struct unspin_pause_hardware *hardware, const struct unspin_pause_loop *loop,
				     const struct unspin_spin *spin)
{
	return unspin_pause_exits(hardware, loop, spin);
}

void unspin_export_pause_spun(const struct unspin_pause_hardware *hardware, struct unspin_pause_loop *loop,
			      const struct unspin_spin *spin, unspin_u64 pauses)
{
	unspin_pause_spun(hardware, loop, spin, pauses);
}

void unspin_export_spin_of_count(struct unspin_spin *spin, unspin_u64 now_cycles, unspin_u32 spin_cycles,
				 unspin_u32 spins_per_pause, unspin_u32 spins_to_pause)
{
	unspin_spin_of_count(spin, now_cycles, spin_cycles, spins_per_pause, spins_to_pause);
}

unspin_u64 unspin_export_spins_until(unspin_u64 pause, unspin_u32 spins_per_pause, unspin_u32 spins_to_pause)
{
	return unspin_spins_until(pause, spins_per_pause, spins_to_pause);
}

unspin_u32 unspin_export_apple_pauses(unspin_u32 cycles)
{
	return unspin_apple_pauses(cycles);
}

void unspin_export_apple_start(const struct unspin_apple_rule *rule, struct unspin_apple *apple)
{
	unspin_apple_start(rule, apple);
}

unspin_u32 unspin_export_apple_window(const struct unspin_apple_rule *rule, const struct unspin_apple *apple)
{
	return unspin_apple_window(rule, apple);
}

void unspin_export_apple_epoch_over(const struct unspin_apple_rule *rule, struct unspin_apple *apple,
				    unspin_u64 inefficiency_ppm)
{
	unspin_apple_epoch_over(rule, apple, inefficiency_ppm);
}

unspin_u32 unspin_export_candidate_verdict(const struct unspin_spinner *spinner, const struct unspin_yield_facts *facts)
{
	return unspin_candidate_verdict(spinner, facts);
}

unspin_u32 unspin_export_is_receiver(const struct unspin_spinner *spinner, const struct unspin_yield_facts *facts)
{
	return unspin_is_receiver(spinner, facts);
}

void unspin_export_walk_begin(struct unspin_walk *walk, unspin_u32 rule, unspin_u32 self, unspin_u32 last_boosted,
			      unspin_u32 vcpus)
{
	unspin_walk_begin(walk, rule, self, last_boosted, vcpus);
}

unspin_u32 unspin_export_walk_next(struct unspin_walk *walk)
{
	return unspin_walk_next(walk);
}

void unspin_export_walk_tried(struct unspin_walk *walk, unspin_u32 vcpu, int result)
{
	unspin_walk_tried(walk, vcpu, result);
}

unspin_u64 unspin_export_deboosted(unspin_u32 form, const struct unspin_deboost_facts *facts)
{
	return unspin_deboosted(form, facts);
}

unspin_u32 unspin_export_counts_critical(const struct unspin_counts_seen *seen)
{
	return unspin_counts_critical(seen);
}

unspin_u32 unspin_export_critical_function(const char *symbol)
{
	return unspin_critical_function(symbol);
}

unspin_u64 unspin_export_lag_credited(const struct unspin_lag_facts *facts)
{
	return unspin_lag_credited(facts);
}

_Bool unspin_export_lag_forces(unspin_u64 now_ns, unspin_u64 last_ns)
{
	return unspin_lag_forces(now_ns, last_ns);
}

/* Nothing is known but, perhaps, how many critical sections self is in. */
static void facts_of_critical(struct unspin_facts *facts, _Bool known, unspin_u32 critical)
{
	vcpu_is_unknown(&facts->self);
	vcpu_is_unknown(&facts->candidate);
	facts->slice_ns = 0;
	facts->slice_left_ns = 0;
	facts->recent_ns = 0;
	facts->threshold_ns = 0;
	order_is_unknown(&facts->order);
	if (known)
		facts->self.critical = (struct unspin_fact){critical, 0};
}

void unspin_export_ecs_on_slice_start(struct unspin_policy_state *state)
{
	struct unspin_facts facts;

	facts_of_critical(&facts, 0, 0);
	ecs_on_slice_start(&facts, state);
}

unspin_u32 unspin_export_ecs_on_slice_end(_Bool known, unspin_u32 critical, struct unspin_policy_state *state)
{
	struct unspin_facts facts;

	facts_of_critical(&facts, known, critical);
	return ecs_on_slice_end(&facts, state).budget_ns;
}

_Bool unspin_export_ecs_on_poll(_Bool give_back, _Bool known, unspin_u32 critical, struct unspin_policy_state *state)
{
	struct unspin_facts facts;
	struct unspin_decision decision;

	facts_of_critical(&facts, known, critical);
	decision = give_back ? ecs_give_back_on_poll(&facts, state) : ecs_on_poll(&facts, state);
	return decision.action == UNSPIN_GIVE_BACK;
}

unspin_u64 unspin_export_ecs_avoided_ppm(const struct unspin_ecs_account *account)
{
	return unspin_ecs_avoided_ppm(account);
}

unspin_u32 unspin_export_ecs_non_preemptable(const struct unspin_ecs_counters *counters)
{
	return unspin_ecs_non_preemptable(counters);
}

unspin_u32 unspin_export_ecs_preemptable(const struct unspin_ecs_counters *counters)
{
	return unspin_ecs_preemptable(counters);
}

unspin_u32 unspin_export_ecs_classes(const struct unspin_ecs_counters *counters)
{
	return unspin_ecs_classes(counters);
}

unspin_u32 unspin_export_ecs_class(const struct unspin_ecs_counters *counters)
{
	return unspin_ecs_class(counters);
}

void unspin_export_wakeup_split(const struct unspin_wakeup *wakeup, struct unspin_wakeup_parts *parts)
{
	unspin_wakeup_split(wakeup, parts);
}

unspin_u32 unspin_export_pcpu_overloaded(unspin_u32 others)
{
	return unspin_pcpu_overloaded(others);
}

_Bool unspin_export_schd_spins(unspin_u32 guest_tasks)
{
	return unspin_schd_spins(guest_tasks);
}

_Bool unspin_export_eschd_spins(unspin_u32 guest_tasks, unspin_u32 pcpu_overloaded)
{
	return unspin_eschd_spins(guest_tasks, pcpu_overloaded);
}
