// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is compared on a host. In which order, `steps` says.

use std::{collections::BTreeSet, time::Duration};

use unspin_agent::PolicyChoice;

pub use crate::steps::{Column, Columns, Programs, Steered, Step, Unsteered, Vms, steps};
use crate::{Error, rival::Rival, watch::Observe};

/// How a cell is compared. `S`: what a sample is, a length of time or so many whole runs.
#[derive(Clone, Debug)]
pub struct Plan<S = Duration> {
    /// Pairs of samples of each column.
    pub pairs: u32,
    /// What a sample is.
    pub sample: S,
    /// What is left out after each change of scheduler or policy.
    pub discard: Duration,
    /// Whether BPF programs watch.
    pub observe: Observe,
    /// One column each; without any, and without rivals, there are only ideal and stock.
    pub policies: Vec<PolicyChoice>,
    /// Other sched_ext schedulers, one column each.
    pub rivals: Vec<Rival>,
    /// Our scheduler has vCPU threads only, everything else the kernel's own.
    pub only_vms: bool,
    /// VMs' useful time, as the policy `auto` sees it, is measured beside what they did.
    pub useful_time: bool,
}

impl<S> Plan<S> {
    /// Whether windows are set by any of the policies.
    pub fn sets_windows(&self) -> bool {
        self.policies.iter().any(|policy| policy.window().is_some())
    }

    /// Whether our scheduler is wanted.
    pub fn steers(&self) -> bool {
        self.policies.iter().any(PolicyChoice::steers)
    }

    /// What is measured: everything.
    pub fn columns(&self) -> Columns {
        Columns {
            ideal: true,
            null: true,
            policies: self.policies.len(),
            unsteered: Unsteered::of(self.policies.iter().map(|policy| !policy.steers())),
            rivals: self.rivals.len(),
            steer: self.steers(),
        }
    }

    /// The columns that are judged by stock with their names, in the order of rows: the policies, then the rivals.
    pub fn judged(&self) -> Vec<(Column, String)> {
        let policies = (0..self.policies.len()).map(Column::Policy);
        let rivals = (0..self.rivals.len()).map(Column::Rival);
        let named = |column| (column, self.column_name(column));
        policies.chain(rivals).map(named).collect()
    }

    /// What rows and progress call a column.
    pub fn column_name(&self, column: Column) -> String {
        match column {
            Column::Ideal => "ideal".to_owned(),
            Column::Stock => "stock".to_owned(),
            Column::StockAgain => "stock again".to_owned(),
            Column::RefuseYields => "refuse-yields".to_owned(),
            Column::Policy(at) => self.policies[at].names(),
            Column::Rival(at) => self.rivals[at].name().to_owned(),
            Column::Lock(_) => unreachable!("a plan compares schedulers"),
        }
    }
}

impl Plan {
    /// The words of `unspin compare` that say so.
    pub fn to_args(&self) -> Vec<String> {
        let time = |time: Duration| unspin_scenario::format_duration(nanoseconds(time));
        let mut words = vec![
            format!("--pairs {}", self.pairs),
            format!("--sample {}", time(self.sample)),
            format!("--discard {}", time(self.discard)),
        ];
        match self.observe {
            Observe::Auto => {}
            Observe::On => words.push("--observe on".into()),
            Observe::Off => words.push("--observe off".into()),
        }
        if self.only_vms {
            words.push("--only-vms".into());
        }
        if self.useful_time {
            words.push("--useful-time".into());
        }
        let policies = self.policies.iter();
        words.extend(policies.map(|policy| format!("--policy {policy}")));
        words.extend(self.rivals.iter().map(|rival| format!("--rival {rival}")));
        words
    }
}

/// A time in nanoseconds; the largest number for what is longer than 584 years.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// One comparison has one scheduler.
///
/// # Errors
/// [`Error::Usage`] when the policies name several files.
pub fn check_user_policies(policies: &[PolicyChoice]) -> Result<(), Error> {
    let files = policies.iter().filter_map(PolicyChoice::file);
    if files.collect::<BTreeSet<_>>().len() <= 1 {
        return Ok(());
    }
    Err(Error::Usage(
        "one comparison has room for one user policy: one scheduler is loaded, and policies are switched in it".into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_comparison_has_one_user_policy() {
        let policies = |texts: &[&str]| -> Vec<PolicyChoice> {
            let parsed = texts.iter().map(|text| text.parse().expect("a policy"));
            parsed.collect()
        };
        assert!(check_user_policies(&policies(&["a.c", "loan,a.c", "loan"])).is_ok());
        let two = check_user_policies(&policies(&["a.c", "b.c"]));
        assert!(matches!(two, Err(Error::Usage(_))));
    }
}
