// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens and what came of it, for people.

use std::time::Duration;

use unspin_report::Comparison;

use crate::{
    guard::{Guard, Harm, Judged},
    measured::{Measured, Outcome},
    phase::Phase,
    reading::{VmAbout, percentile},
};

/// A phase in a line.
pub(crate) fn phase(name: &str, phase: &Phase) -> String {
    let length_s = phase.sum.length.as_secs_f64();
    let useful = phase.all_useful_per_s().unwrap_or(0.0);
    let sum = |of: fn(&crate::VmWindow) -> u64| phase.sum.vms.values().map(of).sum::<u64>();
    let (guest_ns, spin_ns) = (sum(|vm| vm.guest_ns), sum(|vm| vm.spin_ns));
    let spin_percent = match guest_ns {
        0 => 0.0,
        guest_ns => 100.0 * spin_ns as f64 / guest_ns as f64,
    };
    let late = percentile(&phase.sum.late_ns, 0.99).map_or(String::new(), |ns| {
        format!("; sleeper late by {} (p99)", time(ns as f64))
    });
    let probe = phase
        .probe_mean()
        .map_or(String::new(), |mean| format!("; probe {}", number(mean)));
    format!(
        "{name}: {length_s:.1} s, {} VMs, {useful:.3} CPUs of useful time, {spin_percent:.1} % of time in guests spun{late}{probe}",
        phase.sum.vms.len()
    )
}

/// What came of it, a line each.
pub fn outcome(measured: &Measured, policy: &str) -> Vec<String> {
    let pairs = measured
        .phases
        .iter()
        .filter(|phase| phase.whole && phase.steered);
    let pairs = pairs.count();
    match &measured.outcome {
        Outcome::Harm(harm) => harm_in_words(harm, &measured.vms, policy),
        Outcome::Better => vec![format!(
            "better: {} under policy {policy}",
            gain(measured).unwrap_or_default()
        )],
        Outcome::NoDifference => vec![format!(
            "no difference: {pairs} pairs show neither gain nor harm by policy {policy}{}; the kernel's own scheduler has the host",
            gain(measured).map_or(String::new(), |gain| format!(" ({gain})"))
        )],
        Outcome::Interrupted => vec![format!(
            "interrupted after {} of the phases; the kernel's own scheduler has the host",
            measured.phases.iter().filter(|phase| phase.whole).count()
        )],
    }
}

/// What makes the result less than it could be, a line each.
pub fn unsure(measured: &Measured) -> Vec<String> {
    let mut says = Vec::new();
    let spun = |phase: &Phase| phase.sum.vms.values().any(|vm| vm.spin_ns > 0);
    if !measured.phases.iter().any(spun) {
        says.push(
            "no VM was seen to spin: where pause-loop exits are off or guests spin without PAUSE nobody sees it, and useful time is all time in the guest"
                .to_owned(),
        );
    }
    if measured.unguarded > 0 {
        says.push(format!(
            "{} VMs were not guarded: there are more threads of vCPUs than are read",
            measured.unguarded
        ));
    }
    says
}

fn gain(measured: &Measured) -> Option<String> {
    let compared = &measured.compared;
    let host = compared
        .host
        .as_ref()
        .map(|of| format!("all VMs together did {} of their useful time", ratio(of)));
    let probe = compared.probe.as_ref();
    let probe = probe.map(|of| format!("the probe printed {} of what it printed", ratio(of)));
    let both: Vec<String> = host.into_iter().chain(probe).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

fn ratio(of: &Comparison) -> String {
    format!(
        "{:.3} ({:.3} to {:.3})",
        of.ratio, of.interval.low, of.interval.high
    )
}

fn harm_in_words(harm: &Harm, vms: &[VmAbout], policy: &str) -> Vec<String> {
    let vm = harm.vm.and_then(|vm| vms.get(vm));
    let who = vm.map_or(String::new(), |vm| {
        format!("VM {} (process {}): ", vm.name, vm.process)
    });
    let what = match &harm.judged {
        Some(judged) => figures(harm.guard, judged),
        None => harm.message.clone(),
    };
    let back = match harm.guard {
        Guard::Pairs => "the kernel's own scheduler has the host".to_owned(),
        _ => format!(
            "seen {} after policy {policy} began, the kernel's own scheduler was back {} later",
            seconds(harm.seen_after),
            seconds(harm.back_after.saturating_sub(harm.seen_after))
        ),
    };
    vec![
        format!(
            "harm by policy {policy}, guard {}: {who}{what}",
            harm.guard.name()
        ),
        back,
    ]
}

/// Both figures, and where harm begins.
fn figures(guard: Guard, judged: &Judged) -> String {
    let value = |value: f64| match guard {
        Guard::UsefulShare => format!("{:.1} %", 100.0 * value),
        Guard::SpinShare => format!("{value:.1} %"),
        Guard::RunDelay | Guard::SleeperDelay => time(value),
        _ => number(value),
    };
    let what = match guard {
        Guard::UsefulShare => "useful time, of the time in which its vCPUs ran or waited,",
        Guard::SpinShare => "spin time, of its time in the guest,",
        Guard::RunDelay => "run delay of its vCPUs (p99)",
        Guard::SleeperDelay => "delay of a thread that sleeps for 1 ms (p99)",
        Guard::Probe => "what the probe prints",
        Guard::Pairs => "useful time, or what the probe prints, of all pairs,",
        Guard::ProbeFails | Guard::TakenBack => "",
    };
    format!(
        "{what} was {}, under the kernel's scheduler {}; harm begins at {}",
        value(judged.steered),
        value(judged.kernel),
        value(judged.limit)
    )
}

fn number(value: f64) -> String {
    match value.abs() {
        0.0..100.0 => format!("{value:.3}"),
        _ => format!("{value:.0}"),
    }
}

fn time(ns: f64) -> String {
    match ns {
        ..1e6 => format!("{:.0} us", ns / 1e3),
        ..1e9 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harm(guard: Guard, vm: Option<usize>, judged: Option<Judged>) -> Harm {
        Harm {
            guard,
            vm,
            judged,
            message: "it did not end within 2.0 s".into(),
            end: None,
            seen_after: Duration::from_millis(2_100),
            back_after: Duration::from_millis(2_700),
        }
    }

    #[test]
    fn harm_names_guard_vm_and_both_figures() {
        let judged = Judged {
            kernel: 40.0,
            steered: 81.25,
            limit: 55.0,
        };
        let said = harm_in_words(&harm(Guard::SpinShare, None, Some(judged)), &[], "loan");
        assert_eq!(
            said,
            [
                "harm by policy loan, guard spin-share: spin time, of its time in the guest, was 81.2 %, under the kernel's scheduler 40.0 %; \
                 harm begins at 55.0 %",
                "seen 2.10 s after policy loan began, the kernel's own scheduler was back 0.60 s later"
            ]
        );
        let said = harm_in_words(&harm(Guard::ProbeFails, None, None), &[], "loan");
        assert_eq!(
            said[0],
            "harm by policy loan, guard probe-fails: it did not end within 2.0 s"
        );
        let judged = Judged {
            kernel: 2e5,
            steered: 4.5e7,
            limit: 6e5,
        };
        let said = figures(Guard::SleeperDelay, &judged);
        assert!(
            said.ends_with(
                "was 45.0 ms, under the kernel's scheduler 200 us; harm begins at 600 us"
            ),
            "{said}"
        );
    }
}
