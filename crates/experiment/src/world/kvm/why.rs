// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why stock is slow: a while of the running VMs, watched by BPF programs and explained (crates/analysis). Outside of all
//! windows, for watching takes CPU time too.

use std::{ops::Range, time::Duration};

use unspin_agent::{EventMask, IpiVisibility, ObserveOptions, ipi_visibility, monotonic_ns};
use unspin_analysis::{
    explain::{
        attribution::{EVENTS_MAX, Explainer, Explanation, Options},
        cause::{Cause, CauseTimes},
    },
    waits::spin_locations::Naming,
};
use unspin_events::{Event, What};
use unspin_vmm::Running;

use crate::{
    Error,
    watch::{Ready, Seen},
};

/// How long stock is watched: hundreds of waits at any rate that matters, and short beside the windows.
const WATCHED: Duration = Duration::from_millis(300);

/// How stock's vCPUs spun, all VMs together.
#[derive(Clone, Debug)]
pub struct Why {
    /// CPU spin time in spin loops, of all CPU time, percent; none without any CPU time.
    pub spin_percent: Option<f64>,
    /// Of the spin time, in the order of [`Cause::ALL`], percent; none when nobody spun.
    pub causes_percent: Option<[f64; Cause::ALL.len()]>,
    /// Pause-loop exits per acquisition; none without an acquisition.
    pub ple_exits_per_op: Option<f64>,
    /// Directed yields that KVM's scheduler took, of all that KVM tried, percent; none when it tried none.
    pub yields_boosted_percent: Option<f64>,
}

/// Watches the VMs for a while, and ends them; `None` when nobody may watch, or events were lost (a line on standard error says
/// so): without them waits have other causes.
pub fn look(mut running: Running, ready: Option<Ready>) -> Result<Option<Why>, Error> {
    let Some(watch) = ready.map_or(Ok(None), Ready::start)? else {
        running.stop()?;
        return Ok(None);
    };
    let (begin, begin_ns) = (running.snapshot(), monotonic_ns());
    let waited = running.wait(WATCHED);
    let (end, end_ns) = (running.snapshot(), monotonic_ns());
    // First the VMs: beside them what was seen is read and explained with a share of a CPU, which took minutes in the testbed.
    let ended = waited.and_then(|_| running.stop());
    let seen = watch.finish()?;
    ended?;
    let grown = end.since(&begin);
    let vcpus = grown.iter().flat_map(|vm| &vm.vcpus);
    let operations = vcpus.map(|vcpu| vcpu.window.operations).sum();
    Ok(why(seen, begin_ns..end_ns, operations))
}

/// What the programs saw in that window, if they saw all of it.
fn why(mut seen: Seen, window_ns: Range<u64>, operations: u64) -> Option<Why> {
    let lost = seen.health.lost_events + seen.dropped_events;
    if lost > 0 {
        eprintln!("unspin: not explained: {lost} events were lost");
        return None;
    }
    // Before it, while one program after another was attached, what they saw had holes.
    seen.events
        .retain(|event| window_ns.contains(&event.time_ns));
    let mut counts = Counts::default();
    seen.events.iter().for_each(|event| counts.add(event));
    Some(sum(seen.events, counts, operations))
}

/// What is counted in the window.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    ple_exits: u64,
    yields_tried: u64,
    yields_boosted: u64,
}

impl Counts {
    fn add(&mut self, event: &Event) {
        match event.what {
            What::PauseExit { .. } => self.ple_exits += 1,
            What::YieldTo { result, .. } => {
                self.yields_tried += 1;
                self.yields_boosted += u64::from(result > 0);
            }
            _ => {}
        }
    }
}

fn sum(events: Vec<Event>, counts: Counts, operations: u64) -> Why {
    let explanation = explain(events);
    let (mut spin_ns, mut cpu_ns) = (CauseTimes::default(), 0);
    for vm in explanation.vms.values() {
        spin_ns.merge(&vm.spin_time);
        cpu_ns += vm.cpu_ns;
    }
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let percent = |part, whole| share(part, whole).map(|share| 100.0 * share);
    Why {
        spin_percent: percent(spin_ns.total(), cpu_ns),
        causes_percent: (spin_ns.total() > 0).then(|| {
            Cause::ALL.map(|cause| 100.0 * spin_ns.of(cause) as f64 / spin_ns.total() as f64)
        }),
        ple_exits_per_op: share(counts.ple_exits, operations),
        yields_boosted_percent: percent(counts.yields_boosted, counts.yields_tried),
    }
}

fn explain(mut events: Vec<Event>) -> Explanation {
    let visible = ipi_visibility(&ObserveOptions {
        events: EventMask::IPIS,
        ..ObserveOptions::default()
    });
    let mut explainer = Explainer::new(Options {
        naming: Naming::default(),
        ipis_seen: visible == IpiVisibility::Visible,
        minimum_wait_ns: u64::MAX,
        waits_max: 0,
        events_max: EVENTS_MAX,
        keep_slices: false,
    });
    // Each CPU writes its own in order; together they almost are.
    events.sort_by_key(|event| event.time_ns);
    events.into_iter().for_each(|event| explainer.push(event));
    explainer.finish()
}

#[cfg(test)]
mod tests {
    use unspin_agent::Health;

    use super::*;

    /// A pause-loop exit at each of these times.
    fn seen(times_ns: &[u64]) -> Seen {
        let exit = |&time_ns: &u64| Event {
            time_ns,
            vm: Some(0),
            vcpu: Some(0),
            thread: 1,
            cpu: 0,
            what: What::PauseExit {
                guest_rip: None,
                mode: None,
                window: None,
                inside_ns: 0,
                other_exits: 0,
                interrupt_exits: 0,
            },
        };
        Seen {
            counters: Vec::new(),
            events: times_ns.iter().map(exit).collect(),
            health: Health::default(),
            dropped_events: 0,
        }
    }

    #[test]
    fn the_window_alone_is_explained() {
        let why = why(seen(&[9, 10, 15, 19, 20]), 10..20, 2).expect("nothing was lost");
        assert_eq!(why.ple_exits_per_op, Some(1.5));
        assert_eq!(
            (why.yields_boosted_percent, why.causes_percent),
            (None, None)
        );
    }

    #[test]
    fn what_lost_events_is_not_explained() {
        let mut lost = seen(&[10]);
        lost.health.lost_events = 1;
        assert!(why(lost, 10..20, 2).is_none());
        let dropped = Seen {
            dropped_events: 1,
            ..seen(&[10])
        };
        assert!(why(dropped, 10..20, 2).is_none());
    }
}
