// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each program costs: its run time less that of an empty program at the same place, in the same run.
//!
//! Where time is counted in instructions (the testbed's deterministic mode: 2 ns each) the result is exact and the same
//! in every run. On other machines it is a mean with this machine's noise in it.

use libbpf_rs::{Link, Object};

use crate::{
    Error, Health, ObserveOptions, ProgramHealth,
    kernel::load,
    observe::{
        health,
        programs::{self, Places},
    },
};

static EMPTY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/empty.bpf.o"));

/// Where bpf/observe/empty.bpf.c has, after the empty program, one of 100 instructions.
const PLACE_OF_HUNDRED: &str = "tp_btf/kvm_exit";

/// An empty program at every place where an observer with the same options has one, until it is dropped. Their runs are
/// counted while somebody has run statistics switched on (`ObserveOptions::run_statistics`).
pub struct EmptyPrograms {
    _links: Vec<Link>,
    object: Object,
}

/// One program's cost.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramCost {
    /// Its section.
    pub name: String,
    /// Runs that the mean is over.
    pub runs: u64,
    /// Mean time of a run beyond that of an empty program, nanoseconds.
    pub own_ns: f64,
}

impl EmptyPrograms {
    /// Loads and attaches them.
    ///
    /// # Errors
    /// What the kernel refused, as for [`crate::Observer::attach`].
    pub fn attach(options: &ObserveOptions) -> Result<EmptyPrograms, Error> {
        EmptyPrograms::at(Places::All, options)
    }

    /// Those at the scheduler's tracepoints only: for a kernel without KVM, beside [`crate::observe::synthetic`] threads.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn attach_to_scheduler(options: &ObserveOptions) -> Result<EmptyPrograms, Error> {
        EmptyPrograms::at(Places::Scheduler, options)
    }

    fn at(places: Places, options: &ObserveOptions) -> Result<EmptyPrograms, Error> {
        let object = programs::load(EMPTY, places, options)?;
        Ok(EmptyPrograms {
            _links: load::attach(&object)?,
            object,
        })
    }

    /// How long one simple instruction took, nanoseconds, in programs at `kvm_exit`; `None` when none ran.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn instruction_ns(&self) -> Result<Option<f64>, Error> {
        let all = health::programs(&self.object)?;
        let at_exit = all
            .iter()
            .filter(|program| program.name == PLACE_OF_HUNDRED);
        let means: Vec<Option<f64>> = at_exit.map(mean_ns).collect();
        Ok(match means[..] {
            [Some(empty), Some(hundred)] => Some((hundred - empty) / 100.0),
            _ => None,
        })
    }

    /// What each program of an observer cost that was observing while these were attached; those that never ran are
    /// left out. Both must have been there for the same work: the means are compared, not the runs.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn costs(&self, observed: &Health) -> Result<Vec<ProgramCost>, Error> {
        let empty = health::programs(&self.object)?;
        let costs = observed.programs.iter().filter_map(|program| {
            let same = empty.iter().find(|empty| empty.name == program.name)?;
            Some(ProgramCost {
                name: program.name.clone(),
                runs: program.run_count,
                own_ns: mean_ns(program)? - mean_ns(same)?,
            })
        });
        Ok(costs.collect())
    }
}

fn mean_ns(program: &ProgramHealth) -> Option<f64> {
    (program.run_count > 0).then(|| program.run_time_ns as f64 / program.run_count as f64)
}
