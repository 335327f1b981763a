// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole recording at a glance: who had each pCPU, what each vCPU did, and what each VM spun for, in bins.
//!
//! A bin's share is a digit from 0 to f (of 15); a lane is a text, a digit a bin, so that a page of many lanes stays small.

use serde::Serialize;
use unspin_analysis::{
    explain::cause::Cause,
    verdict::{
        series::Series,
        study::{CAUSES, Owner, RUNNING, Study, WAITING},
        words::Verdict,
    },
};

use crate::Limits;

/// VMs whose spin time is drawn.
const SPIN_MAX: usize = 16;

/// What is drawn.
#[derive(Serialize)]
pub(crate) struct Overview {
    /// Width of a bin, ns.
    width_ns: u64,
    /// How many there are.
    bins: usize,
    /// Names of VMs, by the place that everything else says.
    vms: Vec<String>,
    cpus: Vec<CpuLane>,
    vcpus: Vec<VcpuLane>,
    spin: Vec<SpinLane>,
    /// Lanes that found no room.
    cpus_left_out: usize,
    vcpus_left_out: usize,
}

#[derive(Serialize)]
struct CpuLane {
    cpu: u16,
    /// Who had it for most of each bin: place of the VM, -1: another VM, -2: a task of the host, -3: nobody.
    owners: Vec<i32>,
    /// That one's share.
    shares: String,
}

#[derive(Serialize)]
struct VcpuLane {
    vm: usize,
    vcpu: u16,
    running: String,
    waiting: String,
    /// Spinning for one that was off its CPU, and otherwise.
    preempted: String,
    spinning: String,
}

#[derive(Serialize)]
struct SpinLane {
    vm: usize,
    width_ns: u64,
    /// By cause, in the order of [`Cause::ALL`]: its share of the VM's CPU time.
    causes: Vec<String>,
    /// Of the time in which its vCPUs could run: their waits for a CPU.
    waiting: String,
}

/// Lanes of the first VMs of `verdicts`.
pub(crate) fn overview(study: &Study, verdicts: &[Verdict], limits: Limits) -> Overview {
    let place = |vm: u32| verdicts.iter().position(|verdict| verdict.vm == vm);
    let widths = study
        .cpus
        .values()
        .flat_map(|owners| owners.values().map(Series::width_ns));
    let lanes = study
        .vms
        .values()
        .flat_map(|of| of.lanes.values().map(Series::width_ns));
    let width_ns = widths.chain(lanes).max().unwrap_or(1);
    let span_ns = study.span_ns.1 - study.span_ns.0;
    let bins = (span_ns.div_ceil(width_ns) as usize).min(limits.bins);
    let cpus: Vec<CpuLane> = study
        .cpus
        .iter()
        .take(limits.lanes)
        .map(|(&cpu, owners)| cpu_lane(cpu, owners.iter(), bins, width_ns, place))
        .collect();
    let all = verdicts.iter().enumerate().flat_map(|(place, verdict)| {
        let lanes = study.vms.get(&verdict.vm).map(|of| &of.lanes);
        lanes
            .into_iter()
            .flatten()
            .map(move |(&vcpu, lane)| (place, vcpu, lane))
    });
    let count = all.clone().count();
    let vcpus: Vec<VcpuLane> = all
        .take(limits.lanes)
        .map(|(vm, vcpu, lane)| {
            let text = |kind: usize| {
                digits(bins, |bin| {
                    (lane.bins().get(bin).map_or(0, |of| of[kind]), width_ns)
                })
            };
            VcpuLane {
                vm,
                vcpu,
                running: text(0),
                waiting: text(1),
                preempted: text(2),
                spinning: text(3),
            }
        })
        .collect();
    Overview {
        width_ns,
        bins,
        vms: verdicts
            .iter()
            .take(limits.vms)
            .map(|verdict| verdict.name.clone())
            .collect(),
        cpus_left_out: study.cpus.len() - cpus.len(),
        vcpus_left_out: count - vcpus.len(),
        cpus,
        vcpus,
        spin: spin(study, verdicts),
    }
}

fn cpu_lane<'a>(
    cpu: u16,
    owners: impl Iterator<Item = (&'a Owner, &'a Series<1>)> + Clone,
    bins: usize,
    width_ns: u64,
    place: impl Fn(u32) -> Option<usize>,
) -> CpuLane {
    let most = |bin: usize| {
        let times = owners
            .clone()
            .map(|(owner, series)| (series.bins().get(bin).map_or(0, |of| of[0]), owner));
        // Of equals the first in the order of owners.
        times.fold((0, None), |most, (ns, owner)| {
            if ns > most.0 {
                (ns, Some(*owner))
            } else {
                most
            }
        })
    };
    let code = |owner: Option<Owner>| match owner {
        Some(Owner::Vm(vm)) => place(vm).map_or(-1, |place| place as i32),
        Some(Owner::OtherVm) => -1,
        Some(Owner::Host) => -2,
        None => -3,
    };
    CpuLane {
        cpu,
        owners: (0..bins).map(|bin| code(most(bin).1)).collect(),
        shares: digits(bins, |bin| (most(bin).0, width_ns)),
    }
}

fn spin(study: &Study, verdicts: &[Verdict]) -> Vec<SpinLane> {
    let shown = verdicts.iter().take(SPIN_MAX).enumerate();
    shown
        .filter_map(|(vm, verdict)| {
            let series = &study.vms.get(&verdict.vm)?.series;
            let bins = series.bins();
            Some(SpinLane {
                vm,
                width_ns: series.width_ns(),
                causes: Cause::ALL
                    .iter()
                    .map(|cause| {
                        digits(bins.len(), |bin| {
                            (bins[bin][CAUSES + cause.index()], bins[bin][RUNNING])
                        })
                    })
                    .collect(),
                waiting: digits(bins.len(), |bin| {
                    (bins[bin][WAITING], bins[bin][RUNNING] + bins[bin][WAITING])
                }),
            })
        })
        .collect()
}

/// A digit for each bin's part of a whole. A part that is there is never 0.
fn digits(bins: usize, part: impl Fn(usize) -> (u64, u64)) -> String {
    let digit = |bin| {
        let (part, whole) = part(bin);
        let fifteenths = (15 * u128::from(part) + u128::from(whole) / 2) / u128::from(whole.max(1));
        let least = u32::from(part > 0);
        char::from_digit((fifteenths as u32).clamp(least, 15), 16).unwrap_or('f')
    };
    (0..bins).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_digits() {
        let parts = [
            (0, 100),
            (1, 100),
            (50, 100),
            (100, 100),
            (130, 100),
            (0, 0),
            (5, 0),
        ];
        assert_eq!(digits(parts.len(), |bin| parts[bin]), "018ff0f");
    }
}
