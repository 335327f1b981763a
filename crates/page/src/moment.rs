// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worst moment, event by event: who had a CPU, who waited for one, who spun, and for which vCPU.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use unspin_analysis::{
    Source,
    verdict::{
        states::{State, StateWalk, Stay},
        study::Study,
        words::Verdict,
    },
};

use crate::Limits;

/// How much time is drawn: some slices of the kernel's default of 2.8 ms.
const LENGTH_NS: u64 = 20_000_000;
/// Before it, so that everybody's place is known where it begins: the longest that a CPU goes without a switch while others want
/// it is a fraction of that.
const LEAD_NS: u64 = 1_000_000_000;
/// Pieces that are kept.
const PIECES_MAX: usize = 40_000;

/// A stretch of time with what every vCPU did.
#[derive(Debug)]
pub struct Moment {
    from_ns: u64,
    to_ns: u64,
    first_ns: u64,
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    begin_ns: u64,
    end_ns: u64,
    vm: u32,
    vcpu: u16,
    cpu: u16,
    kind: u8,
    /// Of spin time: the vCPU that was waited for.
    blamed: Option<u16>,
}

/// Kinds of pieces: states, and from here on causes of spin time in the order of `Cause::ALL`.
const CAUSES: u8 = 5;

#[derive(Serialize)]
pub(crate) struct MomentData {
    /// Since the recording's first event, ns.
    from_ns: u64,
    length_ns: u64,
    lanes: Vec<(usize, u16)>,
    cpus: Vec<u16>,
    /// Lane, begin since `from_ns`, length, kind, pCPU, and the vCPU waited for (-1: none).
    pieces: Vec<(usize, u64, u64, u8, u16, i32)>,
}

impl Moment {
    /// Reads `source` once more for the stretch of 20 ms in which the VM of the first verdict spun most for others that were off their
    /// CPUs, or, without any such time, spun most; `None`: nobody spun.
    pub fn of(source: &mut Source, study: &Study, verdicts: &[Verdict]) -> Option<Moment> {
        let from_ns = verdicts
            .iter()
            .find_map(|verdict| worst(study, verdict.vm))?;
        let mut moment = Moment {
            from_ns,
            to_ns: (from_ns + LENGTH_NS).min(study.span_ns.1),
            first_ns: study.span_ns.0,
            pieces: Vec::new(),
        };
        let mut walk = StateWalk::default();
        let (lead_ns, to_ns) = (from_ns.saturating_sub(LEAD_NS), moment.to_ns);
        source.each(|event| {
            if event.time_ns >= lead_ns && event.time_ns <= to_ns {
                walk.see(&event, |stay| moment.add_stay(&stay));
            }
        });
        // What goes on was not seen to end.
        walk.finish(|stay| {
            moment.add_stay(&Stay {
                end_ns: to_ns.max(stay.end_ns),
                ..stay
            })
        });
        for (vm, slice) in &study.slices {
            moment.add(Piece {
                begin_ns: slice.begin_ns,
                end_ns: slice.end_ns,
                vm: *vm,
                vcpu: slice.vcpu,
                cpu: 0,
                kind: CAUSES + slice.cause.index() as u8,
                blamed: slice.blamed,
            });
        }
        moment.pieces.sort_unstable();
        Some(moment)
    }

    fn add_stay(&mut self, stay: &Stay) {
        let kind = match stay.state {
            State::Running => 0,
            State::Waiting => 1,
            State::Halted => 2,
            State::Device => 3,
            State::Stopped => 4,
        };
        self.add(Piece {
            begin_ns: stay.begin_ns,
            end_ns: stay.end_ns,
            vm: stay.vm,
            vcpu: stay.vcpu,
            cpu: stay.cpu,
            kind,
            blamed: None,
        });
    }

    /// Keeps what is inside.
    fn add(&mut self, piece: Piece) {
        let (begin_ns, end_ns) = (
            piece.begin_ns.max(self.from_ns),
            piece.end_ns.min(self.to_ns),
        );
        if begin_ns < end_ns && self.pieces.len() < PIECES_MAX {
            self.pieces.push(Piece {
                begin_ns,
                end_ns,
                ..piece
            });
        }
    }

    /// Lanes in the order of verdicts. With more pieces than there is room for it ends earlier.
    pub(crate) fn data(&self, verdicts: &[Verdict], limits: Limits) -> MomentData {
        let seen: BTreeSet<(u32, u16)> = self
            .pieces
            .iter()
            .map(|piece| (piece.vm, piece.vcpu))
            .collect();
        let shown = verdicts.iter().take(limits.vms).enumerate();
        let lanes: Vec<(usize, u32, u16)> = shown
            .flat_map(|(place, verdict)| {
                let own = seen.range((verdict.vm, 0)..=(verdict.vm, u16::MAX));
                own.map(move |&(vm, vcpu)| (place, vm, vcpu))
            })
            .take(limits.lanes)
            .collect();
        let places: BTreeMap<(u32, u16), usize> = lanes
            .iter()
            .enumerate()
            .map(|(lane, &(_, vm, vcpu))| ((vm, vcpu), lane))
            .collect();
        let drawn: Vec<(usize, &Piece)> = self
            .pieces
            .iter()
            .filter_map(|piece| Some((*places.get(&(piece.vm, piece.vcpu))?, piece)))
            .collect();
        let end_ns = drawn
            .get(limits.pieces)
            .map_or(self.to_ns, |(_, piece)| piece.begin_ns);
        let pieces = drawn.iter().take(limits.pieces).map(|&(lane, piece)| {
            let end_ns = piece.end_ns.min(end_ns.max(piece.begin_ns));
            let blamed = piece.blamed.map_or(-1, i32::from);
            (
                lane,
                piece.begin_ns - self.from_ns,
                end_ns - piece.begin_ns,
                piece.kind,
                piece.cpu,
                blamed,
            )
        });
        let running = self.pieces.iter().filter(|piece| piece.kind == 0);
        let cpus: BTreeSet<u16> = running.map(|piece| piece.cpu).collect();
        MomentData {
            from_ns: self.from_ns - self.first_ns,
            length_ns: end_ns - self.from_ns,
            lanes: lanes
                .iter()
                .map(|&(place, _, vcpu)| (place, vcpu))
                .collect(),
            cpus: cpus.into_iter().take(limits.lanes).collect(),
            pieces: pieces.collect(),
        }
    }
}

/// Where the VM's worst stretch begins.
fn worst(study: &Study, vm: u32) -> Option<u64> {
    let first_ns = study.span_ns.0;
    let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (_, slice) in study.slices.iter().filter(|(of, _)| *of == vm) {
        let length_ns = slice.end_ns - slice.begin_ns;
        let sum = sums
            .entry((slice.begin_ns - first_ns.min(slice.begin_ns)) / LENGTH_NS)
            .or_default();
        sum.0 += if slice.cause.is_preemption() {
            length_ns
        } else {
            0
        };
        sum.1 += length_ns;
    }
    // Of equals the first.
    let most = sums
        .into_iter()
        .max_by_key(|&(stretch, sum)| (sum, std::cmp::Reverse(stretch)));
    most.map(|(stretch, _)| first_ns + stretch * LENGTH_NS)
}
