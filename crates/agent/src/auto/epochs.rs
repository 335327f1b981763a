// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of choices by trial, of the policy `auto`, here and in the lab, and of `tune`: a line for each change of a VM's
//! policies or slices, and with `--explain-choice` every epoch of one VM, or of all.

use std::{collections::VecDeque, str::FromStr};

use unspin_policy::auto::{AutoReason, AutoSet, AutoStep, TrialInterval};
use unspin_report::{Document, Table, row};
use unspin_vms::{NoSuchVm, VmName};

/// Epochs of one VM that are kept: the last ones, 17 minutes.
const KEPT: usize = 4_096;

row! {
    "auto_epochs", ["steer", "tune", "lab run"];
    /// An epoch of a VM that is chosen for by trial (`--explain-choice`), the last 4,096.
    #[derive(Clone, Debug)]
    pub struct EpochRow {
        /// The VM: its process, in the lab its number.
        pub vm: u32 = ("VM", Text),
        /// What its manager calls it, else its program's name; null: it has ended, or is the lab's.
        pub name: Option<String>,
        /// When it ended, since the scheduler was attached; ns.
        pub at_ns: u64 = ("at", Nanoseconds),
        /// The policies, or slices, under which it ran.
        pub policy: String = ("policy", Text),
        /// How long the part of it was that was measured; ns.
        pub length_ns: u64 = ("measured", Nanoseconds),
        /// CPU time in the guest meanwhile; ns.
        pub guest_ns: u64 = ("in the guest", Nanoseconds),
        /// Of it time that was not spun; ns.
        pub useful_ns: u64 = ("useful", Nanoseconds),
        /// Pause-loop exits.
        pub spin_exits: u64 = ("pause-loop exits", Count),
        /// The policies on trial; null: none are.
        pub on_trial: Option<String> = ("on trial", Text),
        /// Pairs of epochs of that trial so far.
        pub pairs: u32 = ("pairs", Count),
        /// How much the VM does under the policies on trial, as a multiple; null below two pairs, and where none are.
        pub gain: Option<f64> = ("gain", Ratio),
        /// At least, with a confidence of 99.5 %.
        pub gain_low: Option<f64> = ("at least", Ratio),
        /// At most; null also where it has no bound.
        pub gain_high: Option<f64> = ("at most", Ratio),
        /// What the epoch's end has led to.
        pub then: &'static str = ("then", Text),
    }
}

/// Whose epochs are printed: `--explain-choice`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explained {
    /// All VMs'.
    All,
    /// That VM's.
    One(u32),
}

impl Explained {
    /// The running VM of that name, or all.
    ///
    /// # Errors
    /// When there is none of that name, or several may be meant.
    pub fn running(name: &VmName) -> Result<Explained, NoSuchVm> {
        match name.text() {
            "all" => Ok(Explained::All),
            _ => name.process().map(Explained::One),
        }
    }

    fn covers(self, vm: u32) -> bool {
        self == Explained::All || self == Explained::One(vm)
    }
}

impl FromStr for Explained {
    type Err = String;

    fn from_str(word: &str) -> Result<Explained, String> {
        match word {
            "all" => Ok(Explained::All),
            number => number
                .parse()
                .map(Explained::One)
                .map_err(|_| "a number, or `all`".to_owned()),
        }
    }
}

/// What VMs' numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbered {
    /// Processes of this host.
    Processes,
    /// Places in a scenario of the lab.
    Lab,
}

impl Numbered {
    fn in_words(self, vm: u32) -> String {
        match self {
            Numbered::Processes => unspin_vms::in_words(vm),
            Numbered::Lab => format!("VM {vm}"),
        }
    }

    fn name(self, vm: u32) -> Option<String> {
        match self {
            Numbered::Processes => unspin_vms::name_of(vm),
            Numbered::Lab => None,
        }
    }
}

/// Epochs as they end.
pub struct Epochs {
    /// What the VM of a number is.
    vms: Numbered,
    /// The VMs whose epochs are wanted.
    wanted: Option<Explained>,
    /// What a set is called.
    words: fn(AutoSet) -> String,
    rows: VecDeque<EpochRow>,
}

impl Epochs {
    /// Of those VMs, if any; `words`: what a set comes to.
    pub fn of(vms: Numbered, wanted: Option<Explained>, words: fn(AutoSet) -> String) -> Epochs {
        Epochs {
            vms,
            wanted,
            words,
            rows: VecDeque::new(),
        }
    }

    /// Keeps what is wanted. What is to be said: what has changed, and the epoch where it is wanted, a line each.
    #[must_use]
    pub fn add(&mut self, step: &AutoStep) -> Vec<String> {
        let vm = self.vms.in_words(step.vm);
        let change = change(step, self.words);
        let mut lines: Vec<String> = change
            .map(|line| format!("{vm}: {line}"))
            .into_iter()
            .collect();
        if !self.wanted.is_some_and(|wanted| wanted.covers(step.vm)) {
            return lines;
        }
        lines.push(format!("{vm} {}", epoch(step, self.words)));
        if self.rows.len() == KEPT {
            self.rows.pop_front();
        }
        self.rows.push_back(EpochRow {
            name: self.vms.name(step.vm),
            ..row(step, self.words)
        });
        lines
    }

    /// All that were kept.
    pub fn table(&self, document: &mut Document) {
        let title = match self.wanted {
            None => return,
            Some(Explained::All) => "\nEpochs".to_owned(),
            Some(Explained::One(vm)) => format!("\nEpochs of {}", self.vms.in_words(vm)),
        };
        document.table(Table::of(title, self.rows.iter().cloned()));
    }
}

/// A change of the VM's policies in a line: from what to what, on which evidence; `None`: nothing has changed.
fn change(step: &AutoStep, words: fn(AutoSet) -> String) -> Option<String> {
    let evidence = match step.reason {
        AutoReason::Better => format!("its useful time was {}", gain(step.interval, step.pairs)),
        AutoReason::Harms => format!(
            "it spun {} % of its time in the guest, more than before",
            percent(step.grown.spin_permille())
        ),
        _ if step.acting == step.acted => return None,
        _ => then(step.reason).to_owned(),
    };
    Some(format!(
        "{} in place of {}: {evidence}",
        words(step.acting),
        words(step.acted)
    ))
}

fn epoch(step: &AutoStep, words: fn(AutoSet) -> String) -> String {
    let trial = step.on_trial.map_or(String::new(), |set| {
        let gain = match step.interval {
            None => String::new(),
            Some(_) => format!(", {}", gain(step.interval, step.pairs)),
        };
        format!("; {} on trial{gain}", words(set))
    });
    format!(
        "at {:.1} s: under {}, {:.0} ms in the guest in {:.0} ms, {} % of it spun{trial}; {}",
        step.at.as_secs_f64(),
        words(step.ran_under),
        step.grown.guest_ns as f64 / 1e6,
        step.length.as_secs_f64() * 1e3,
        percent(step.grown.spin_permille()),
        then(step.reason)
    )
}

fn percent(permille: u32) -> f64 {
    f64::from(permille) / 10.0
}

fn gain(interval: Option<TrialInterval>, pairs: u32) -> String {
    match interval {
        None => format!("not compared in {pairs} pairs"),
        Some(TrialInterval { low, middle, high }) => {
            let high = match high.is_finite() {
                true => format!(" to {high:.2}"),
                false => " up".to_owned(),
            };
            format!("{middle:.2} times as much ({low:.2}{high}; {pairs} pairs of epochs)")
        }
    }
}

fn then(reason: AutoReason) -> &'static str {
    match reason {
        AutoReason::GoesOn => "goes on",
        AutoReason::Tries => "a trial begins",
        AutoReason::Better => "they are better, and act from now on",
        AutoReason::NotBetter => "they are not better",
        AutoReason::NotResolved => "no difference could be shown",
        AutoReason::LoadChanged => "the load has changed: all are tried again",
        AutoReason::LoadBack => "a load is back that was there before",
        AutoReason::Harms => "the VM spins more than it did at first, and goes back to that",
    }
}

fn row(step: &AutoStep, words: fn(AutoSet) -> String) -> EpochRow {
    let nanoseconds =
        |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    EpochRow {
        vm: step.vm,
        name: None,
        at_ns: nanoseconds(step.at),
        policy: words(step.ran_under),
        length_ns: nanoseconds(step.length),
        guest_ns: step.grown.guest_ns,
        useful_ns: step.grown.useful_ns(),
        spin_exits: step.grown.spin_exits,
        on_trial: step.on_trial.map(words),
        pairs: step.pairs,
        gain: step.interval.map(|interval| interval.middle),
        gain_low: step.interval.map(|interval| interval.low),
        gain_high: step
            .interval
            .map(|interval| interval.high)
            .filter(|high| high.is_finite()),
        then: then(step.reason),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use unspin_policy::auto::UsefulTime;

    use super::*;

    fn step(reason: AutoReason, acting: AutoSet, high: f64) -> AutoStep {
        AutoStep {
            vm: 7,
            at: Duration::from_millis(2_690),
            ran_under: AutoSet::FIRST,
            length: Duration::from_millis(150),
            grown: UsefulTime {
                guest_ns: 290_000_000,
                spin_ns: 145_000_000,
                spin_exits: 400,
                user_spin_exits: 0,
                ..UsefulTime::default()
            },
            reason,
            acting,
            acted: AutoSet::FIRST,
            on_trial: Some(acting),
            pairs: 3,
            interval: Some(TrialInterval {
                low: 2.63,
                middle: 3.61,
                high,
            }),
        }
    }

    fn policies(set: AutoSet) -> String {
        set.policies().to_string()
    }

    fn loan() -> AutoSet {
        AutoSet::all().nth(1).expect("there are four")
    }

    #[test]
    fn a_change_says_from_what_to_what_and_why() {
        let better = step(AutoReason::Better, loan(), 5.0);
        assert_eq!(
            change(&better, policies).as_deref(),
            Some(
                "loan,loan-cpl,kernel-exit,spin-samples in place of kernel-exit,candidates=strict: its \
                 useful time was 3.61 times as much (2.63 to 5.00; 3 pairs of epochs)"
            )
        );
        let open = change(&step(AutoReason::Better, loan(), f64::INFINITY), policies);
        assert!(open.is_some_and(|line| line.contains("(2.63 up; 3")));
        for nothing in [AutoReason::GoesOn, AutoReason::Tries, AutoReason::NotBetter] {
            assert_eq!(change(&step(nothing, AutoSet::FIRST, 5.0), policies), None);
        }
        let harms = AutoStep {
            acted: loan(),
            ..step(AutoReason::Harms, AutoSet::FIRST, 5.0)
        };
        assert!(change(&harms, policies).is_some_and(|line| {
            line.ends_with("it spun 50 % of its time in the guest, more than before")
        }));
    }

    #[test]
    fn epochs_of_one_vm_are_kept_up_to_a_bound() {
        let better = step(AutoReason::Better, loan(), f64::INFINITY);
        let mut epochs = Epochs::of(Numbered::Lab, Some(Explained::One(7)), policies);
        for _ in 0..KEPT + 5 {
            let said = epochs.add(&better);
            assert!(said.len() == 2 && said[1].starts_with("VM 7 at 2.7 s"));
        }
        let other = AutoStep {
            vm: 8,
            ..better.clone()
        };
        assert_eq!(epochs.add(&other).len(), 1);
        assert_eq!(epochs.rows.len(), KEPT);
        let row = &epochs.rows[0];
        assert_eq!((row.useful_ns, row.gain_high), (145_000_000, None));
        assert!(epoch(&better, policies).starts_with(
            "at 2.7 s: under kernel-exit,candidates=strict, 290 ms in the guest in 150 ms"
        ));
        let mut none = Epochs::of(Numbered::Lab, None, policies);
        assert!(none.add(&better)[0].starts_with("VM 7: loan"));
        assert!(none.rows.is_empty());
        let mut all = Epochs::of(Numbered::Lab, "all".parse().ok(), policies);
        assert_eq!(all.add(&better).len(), 2);
        assert_eq!(all.rows[0].vm, 7);
        assert!("some".parse::<Explained>().is_err());
    }
}
