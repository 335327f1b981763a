// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every header of `policy/` compiles by itself for BPF, where the same decisions are made.

use std::{env, fs, path::Path, process::Command};

/// Compiles a program for BPF with the compiler that `bpf/` is compiled with.
fn compile(folder: &Path, program: &str) -> Result<(), String> {
    let source = folder.join("program.c");
    fs::write(&source, program).expect("a file");
    let clang = env::var("UNSPIN_CLANG").unwrap_or_else(|_| "clang-19".to_owned());
    let output = Command::new(&clang)
        .args([
            "-target",
            "bpf",
            "-mcpu=v3",
            "-std=c11",
            "-O2",
            "-ffreestanding",
        ])
        .args(["-Wall", "-Wextra", "-Werror", "-c", "-o"])
        .arg(folder.join("program.o"))
        .arg(&source)
        .output()
        .unwrap_or_else(|error| panic!("{clang}: {error} (UNSPIN_CLANG names another clang)"));
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn every_header_compiles_for_bpf() {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policy");
    let folder = tempfile::tempdir().expect("a folder");
    let mut headers = 0;
    for room in ["", "auto", "steering", "model", "classify", "mechanics"] {
        for entry in fs::read_dir(policy.join(room)).expect("a folder of policy/") {
            let header = entry.expect("an entry").path();
            if header.extension().is_none_or(|extension| extension != "h") {
                continue;
            }
            let program = format!("#include \"{}\"\n", header.display());
            compile(folder.path(), &program)
                .unwrap_or_else(|error| panic!("{}:\n{error}", header.display()));
            headers += 1;
        }
    }
    assert!(headers >= 41, "{headers} headers");
}

/// Every decision once, on facts that are not constant for the compiler.
const DECIDE: &str = "
struct all {
    struct unspin_ple_facts facts;
    struct unspin_ple_candidate candidate;
    struct unspin_ple_reason_facts why;
    struct unspin_ple_run run;
    struct unspin_ple_run_exit exit;
    struct unspin_epoch epoch;
    struct unspin_window_rule window;
    struct unspin_pause_hardware hardware;
    struct unspin_pause_loop loop;
    struct unspin_spin spin;
    struct unspin_apple_rule apple_rule;
    struct unspin_apple apple;
    struct unspin_spinner spinner;
    struct unspin_yield_facts yield;
    struct unspin_walk walk;
    struct unspin_deboost_facts deboost;
    struct unspin_lag_facts lag;
    struct unspin_facts steered;
    struct unspin_policy_state state;
    struct unspin_ecs_account account;
    struct unspin_wakeup wakeup;
    struct unspin_ecs_counters counters;
    struct unspin_group_weight group;
    struct unspin_clock_rate rate;
    struct unspin_buddy_places places;
    struct unspin_gang_place gang;
    struct unspin_order_place place;
    struct unspin_decision decision;
    unsigned long long vtime, weight, clock, other, slice;
};
unsigned exits(struct all *all)
{
    unspin_ple_add_candidate(&all->facts, &all->candidate, all->candidate.mode);
    unspin_epoch_add_exit(&all->epoch, all->exit.other_exits);
    return unspin_ple_outcome(&all->facts) + unspin_ple_reason(&all->why) + unspin_ple_run_add(&all->run, &all->exit, 0) +
           unspin_inefficiency_ppm(&all->epoch, 400) + unspin_window_is_quicker(all->epoch.cpu_ns, 7, 5, all->window.grow) +
           unspin_exit_counts(all->window.grow, all->window.shrink, 1);
}
unsigned long windows(struct all *all)
{
    unspin_spin_of_count(&all->spin, all->loop.last_cycles, all->window.base, all->window.grow, all->window.shrink);
    unspin_pause_entered(&all->hardware, &all->loop);
    unspin_pause_spun(&all->hardware, &all->loop, &all->spin, all->epoch.exits);
    unspin_apple_start(&all->apple_rule, &all->apple);
    unspin_apple_epoch_over(&all->apple_rule, &all->apple, all->epoch.cpu_ns);
    return unspin_window_after_exit(&all->window, all->hardware.window, unspin_apple_window(&all->apple_rule, &all->apple)) +
           unspin_window_after_switch(&all->window, all->hardware.window) + unspin_apple_pauses(all->window.max) +
           unspin_spins_until(unspin_pause_exits(&all->hardware, &all->loop, &all->spin), all->window.grow, 1);
}
unsigned long yields(struct all *all)
{
    unspin_walk_begin(&all->walk, all->spinner.rule, 0, 0, all->walk.vcpus);
    unspin_walk_tried(&all->walk, unspin_walk_next(&all->walk), 1);
    return unspin_candidate_verdict(&all->spinner, &all->yield) + unspin_deboosted(all->spinner.rule, &all->deboost) +
           unspin_lag_credited(&all->lag) + unspin_lag_forces(all->lag.limit_vtime, all->lag.margin_vtime);
}
unsigned long long mechanics(struct all *all)
{
    unsigned long long weight = unspin_weight_in_parent(unspin_weight_of_task(all->group.weight), all->group.weight, all->group.sum);
    unsigned long long clock = unspin_advance_clock(all->clock, all->vtime, all->other != 0, all->other);
    weight = unspin_weight_among_all(weight) + unspin_group_add(&all->group, all->group.sum) + unspin_group_set_weight(&all->group, 7);
    unspin_measure_rate(&all->rate, all->rate.since_ns, clock, all->other);
    return unspin_place_vtime(all->vtime, weight, all->other, unspin_placing_clock(clock, unspin_abreast(clock, all->other), 1), all->slice) +
           unspin_align(all->vtime, all->other, weight, all->slice) + unspin_start_vtime(clock, weight, all->slice) +
           unspin_latest_shared(clock, unspin_farthest_ahead(all->rate.in_time_ns, all->slice), all->clock, all->other) +
           unspin_buddy_outcome(&all->places) + unspin_gang_may_cut(&all->gang, 0, all->other, clock);
}
unsigned long long slices(struct all *all)
{
    unsigned long long left = unspin_slice_left(all->vtime, all->other);
    unspin_order_of_candidate(&all->steered.order, &all->place, &all->place, 1);
    unspin_order_of_self(&all->steered.order, &all->place, &all->place, left);
    unspin_order_of_queue(&all->steered.order, &all->place, all->clock, 3, all->slice);
    return unspin_slice_length(left, all->decision.action, 7) + unspin_slice_returns(left) +
           unspin_slice_payer(all->place.queue, 3) + unspin_slice_lender(all->place.group, 3, left != 0) +
           unspin_within_slice(all->place.queue, all->decision).action + unspin_may_be_granted(all->place.queue);
}
static unsigned long woken(const struct unspin_wakeup *wakeup)
{
    struct unspin_wakeup_parts parts;
    unspin_wakeup_split(wakeup, &parts);
    return parts.exit + parts.host + parts.guest;
}
unsigned long sections(struct all *all)
{
    ecs_on_slice_start(&all->steered, &all->state);
    ecs_give_back_on_slice_start(&all->steered, &all->state);
    return ecs_on_slice_end(&all->steered, &all->state).action + ecs_on_poll(&all->steered, &all->state).action +
           ecs_give_back_on_slice_end(&all->steered, &all->state).action +
           ecs_give_back_on_poll(&all->steered, &all->state).action + unspin_ecs_avoided_ppm(&all->account) +
           unspin_ecs_classes(&all->counters) + unspin_ecs_class(&all->counters) +
           woken(&all->wakeup) + unspin_eschd_spins(all->counters.spin, unspin_pcpu_overloaded(all->counters.mutex));
}
";

/// A program that calls the decisions: BPF has no signed division, no 128-bit arithmetic and no calls into libraries.
#[test]
fn every_decision_becomes_bpf_code() {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policy/all.h");
    let folder = tempfile::tempdir().expect("a folder");
    let program = format!("#include \"{}\"\n{DECIDE}", policy.display());
    compile(folder.path(), &program).unwrap_or_else(|error| panic!("{error}"));
    // The test does find what BPF cannot do.
    let refused = "long divide(long a, long b) { return a / b; }\n";
    assert!(compile(folder.path(), refused).is_err());
}
