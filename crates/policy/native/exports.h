/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* exports.h - the functions of policy/ that Rust calls, as symbols: there they are static inline. */
#ifndef UNSPIN_POLICY_EXPORTS_H
#define UNSPIN_POLICY_EXPORTS_H

#include "../../../policy/all.h"

void unspin_export_add_candidate(struct unspin_ple_facts *facts, const struct unspin_ple_candidate *candidate,
				 unspin_u32 spinner_mode);
unspin_u32 unspin_export_is_halted(const struct unspin_ple_candidate *candidate);
unspin_u32 unspin_export_outcome(const struct unspin_ple_facts *facts);
unspin_u32 unspin_export_reason(const struct unspin_ple_reason_facts *facts);
_Bool unspin_export_may_wait_for_answers(unspin_u32 ipi, unspin_u32 vector);
unspin_u32 unspin_export_symbol_of(const char *symbol);
unspin_u32 unspin_export_linux_vector(unspin_u32 vector);
unspin_u64 unspin_export_run_end(struct unspin_ple_run *run);
unspin_u64 unspin_export_run_add(struct unspin_ple_run *run, const struct unspin_ple_run_exit *exit, unspin_u32 rule);
void unspin_export_run_count(struct unspin_ple_run_shares *shares, unspin_u64 exits, unspin_u64 vcpus);
_Bool unspin_export_epoch_add_exit(struct unspin_epoch *epoch, unspin_u32 window);
unspin_u64 unspin_export_inefficiency_ppm(const struct unspin_epoch *epoch, unspin_u64 unit_ps);
_Bool unspin_export_exit_counts(unspin_u32 bound, unspin_u32 exit, unspin_u32 waits_for_lock);
_Bool unspin_export_window_is_quicker(unspin_u64 inside_ns, unspin_u64 units, unspin_u64 quickest_ns,
				      unspin_u64 quickest_units);
unspin_u64 unspin_export_window_unit_ps(unspin_u64 inside_ns, unspin_u64 units, unspin_u64 least_unit_ps);
_Bool unspin_export_window_is_honoured(unspin_u64 inside_ns, unspin_u64 units, unspin_u64 least_unit_ps);

unspin_u32 unspin_export_window_after_exit(const struct unspin_window_rule *rule, unspin_u32 window,
					   unspin_u32 desired);
unspin_u32 unspin_export_window_after_switch(const struct unspin_window_rule *rule, unspin_u32 window);
void unspin_export_pause_entered(const struct unspin_pause_hardware *hardware, struct unspin_pause_loop *loop);
unspin_u64 unspin_export_pause_exits(const struct unspin_pause_hardware *hardware, const struct unspin_pause_loop *loop,
				     const struct unspin_spin *spin);
void unspin_export_pause_spun(const struct unspin_pause_hardware *hardware, struct unspin_pause_loop *loop,
			      const struct unspin_spin *spin, unspin_u64 pauses);
void unspin_export_spin_of_count(struct unspin_spin *spin, unspin_u64 now_cycles, unspin_u32 spin_cycles,
				 unspin_u32 spins_per_pause, unspin_u32 spins_to_pause);
unspin_u64 unspin_export_spins_until(unspin_u64 pause, unspin_u32 spins_per_pause, unspin_u32 spins_to_pause);

unspin_u32 unspin_export_apple_pauses(unspin_u32 cycles);
void unspin_export_apple_start(const struct unspin_apple_rule *rule, struct unspin_apple *apple);
unspin_u32 unspin_export_apple_window(const struct unspin_apple_rule *rule, const struct unspin_apple *apple);
void unspin_export_apple_epoch_over(const struct unspin_apple_rule *rule, struct unspin_apple *apple,
				    unspin_u64 inefficiency_ppm);

unspin_u32 unspin_export_candidate_verdict(const struct unspin_spinner *spinner,
					   const struct unspin_yield_facts *facts);
unspin_u32 unspin_export_is_receiver(const struct unspin_spinner *spinner, const struct unspin_yield_facts *facts);
void unspin_export_walk_begin(struct unspin_walk *walk, unspin_u32 rule, unspin_u32 self, unspin_u32 last_boosted,
			      unspin_u32 vcpus);
unspin_u32 unspin_export_walk_next(struct unspin_walk *walk);
void unspin_export_walk_tried(struct unspin_walk *walk, unspin_u32 vcpu, int result);

unspin_u64 unspin_export_deboosted(unspin_u32 form, const struct unspin_deboost_facts *facts);
unspin_u32 unspin_export_counts_critical(const struct unspin_counts_seen *seen);
unspin_u32 unspin_export_critical_function(const char *symbol);
unspin_u64 unspin_export_lag_credited(const struct unspin_lag_facts *facts);
_Bool unspin_export_lag_forces(unspin_u64 now_ns, unspin_u64 last_ns);

/* eCS's decisions, with the one fact that they look at. */
void unspin_export_ecs_on_slice_start(struct unspin_policy_state *state);
unspin_u32 unspin_export_ecs_on_slice_end(_Bool known, unspin_u32 critical, struct unspin_policy_state *state);
_Bool unspin_export_ecs_on_poll(_Bool give_back, _Bool known, unspin_u32 critical, struct unspin_policy_state *state);
unspin_u64 unspin_export_ecs_avoided_ppm(const struct unspin_ecs_account *account);
unspin_u32 unspin_export_ecs_non_preemptable(const struct unspin_ecs_counters *counters);
unspin_u32 unspin_export_ecs_preemptable(const struct unspin_ecs_counters *counters);
unspin_u32 unspin_export_ecs_classes(const struct unspin_ecs_counters *counters);
unspin_u32 unspin_export_ecs_class(const struct unspin_ecs_counters *counters);
void unspin_export_wakeup_split(const struct unspin_wakeup *wakeup, struct unspin_wakeup_parts *parts);
unspin_u32 unspin_export_pcpu_overloaded(unspin_u32 others);
_Bool unspin_export_schd_spins(unspin_u32 guest_tasks);
_Bool unspin_export_eschd_spins(unspin_u32 guest_tasks, unspin_u32 pcpu_overloaded);

#endif
