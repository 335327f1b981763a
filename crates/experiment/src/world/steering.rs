// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who schedules while compared work goes on: our scheduler is attached, its policies are switched, and it goes; so do rivals.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::anyhow;
use unspin_agent::{
    AutoController, AutoSteering, ChosenPolicies, LoadedSteerer, ProgramHealth, SteerOptions,
    Steerer, tune::Tuning,
};
use unspin_policy::steering::{Policies, WindowPolicy};

use crate::{
    Error, Session,
    plan::{Plan, Steered},
    rival::{Attached, Place},
};

/// How long the policy `auto` is at work beside VMs that have just started, before the first sample: what choosing costs at first is
/// another figure than what it comes to.
const LEARNING: Duration = Duration::from_secs(20);
/// Decides on the orders of its trials.
const AUTO_SEED: u64 = 1;

/// Policies that choose by trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Learner {
    Auto,
    Tune,
}

impl Learner {
    fn name(self) -> &'static str {
        match self {
            Learner::Auto => "auto",
            Learner::Tune => "tune",
        }
    }
}

/// The host's own scheduler, ours or a rival; its own again when dropped.
pub struct Steering<'a> {
    /// By policy; one scheduler has them all.
    chosen: Vec<ChosenPolicies>,
    /// While the policy `auto` decides; it goes before the scheduler does.
    auto: Option<AutoSteering>,
    /// What it has learned, while it does not.
    learned: Option<AutoController>,
    /// While vCPUs have slices of their own under the host's scheduler; and what was learned, by policy.
    tuning: Option<(usize, Tuning)>,
    tuning_learned: BTreeMap<usize, AutoController>,
    /// Those that have not been at work since the VMs started.
    new_for: BTreeSet<Learner>,
    /// The next one.
    loaded: Option<LoadedSteerer>,
    steerer: Option<Steerer>,
    /// By rival.
    rivals: Vec<Place>,
    rival: Option<Attached>,
    session: &'a Session<'a>,
    /// Whether runs and time of its programs are counted.
    run_statistics: bool,
    /// Whether it has vCPU threads only.
    only_vms: bool,
}

impl<'a> Steering<'a> {
    /// The host's own, until told otherwise.
    ///
    /// # Errors
    /// When a user policy cannot be had, or a rival is not built.
    pub fn of<S>(plan: &Plan<S>, session: &'a Session<'a>) -> Result<Steering<'a>, Error> {
        let ready = plan.policies.iter().map(|choice| choice.ready(false));
        Ok(Steering {
            chosen: ready.collect::<Result<_, _>>()?,
            auto: None,
            learned: None,
            tuning: None,
            tuning_learned: BTreeMap::new(),
            new_for: [Learner::Auto, Learner::Tune].into(),
            loaded: None,
            steerer: None,
            rivals: Place::all(&plan.rivals)?,
            rival: None,
            session,
            run_statistics: false,
            only_vms: false,
        })
    }

    /// The same, and runs and time of our scheduler's programs are counted, which costs some of it.
    pub fn with_run_statistics(mut self, wanted: bool) -> Self {
        self.run_statistics = wanted;
        self
    }

    /// The same; where `wanted` our scheduler has vCPU threads only, everything else stays with the kernel's own.
    pub fn with_only_vms(mut self, wanted: bool) -> Self {
        self.only_vms = wanted;
        self
    }

    /// Runs and time of our scheduler's programs so far; none while it is not attached.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn programs(&self) -> Result<Vec<ProgramHealth>, Error> {
        let programs = self.steerer.as_ref().map(Steerer::programs);
        Ok(programs.transpose()?.unwrap_or_default())
    }

    /// Loads our scheduler for when it is wanted, while nobody is in a hurry: beside VMs that fill the host it takes many times
    /// as long.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn load(&mut self) -> Result<(), Error> {
        let options = SteerOptions {
            // Policies of one comparison have a user policy between them.
            user_policy: self
                .chosen
                .iter()
                .find_map(|chosen| chosen.user_policy.clone()),
            candidates: self
                .chosen
                .iter()
                .any(|chosen| chosen.auto || chosen.policies.need_candidates()),
            run_statistics: self.run_statistics,
            only_vms: self.only_vms,
            ..SteerOptions::default()
        };
        self.loaded = Some(Steerer::load(&options)?);
        Ok(())
    }

    /// From now on this one schedules.
    ///
    /// # Errors
    /// When a scheduler cannot be had, or the kernel has sent it away meanwhile.
    pub fn to(&mut self, to: Steered) -> Result<(), Error> {
        self.still_attached()?;
        if let Some(rival) = self.rival.take() {
            rival.end()?;
        }
        if let Some(auto) = self.auto.take() {
            self.learned = Some(auto.end()?);
        }
        if let Some((policy, tuning)) = self.tuning.take() {
            let learned = tuning.end()?.map(|learned| (policy, learned));
            self.tuning_learned.extend(learned);
        }
        let policies = match to {
            Steered::RefuseYields => Policies::REFUSE_YIELDS,
            Steered::Policy(policy) if self.chosen[policy].steers => self.chosen[policy].policies,
            Steered::Not | Steered::Policy(_) => {
                self.steerer = None;
                return self.tune(to);
            }
            Steered::Rival(rival) => {
                self.steerer = None;
                self.rival = Some(Attached::start(&self.rivals[rival], self.session)?);
                return Ok(());
            }
        };
        let steerer = match self.steerer.take() {
            Some(steerer) => steerer,
            None => {
                let loaded = self
                    .loaded
                    .take()
                    .expect("it is loaded before it is wanted");
                loaded.attach()?
            }
        };
        let steerer = self.steerer.insert(steerer);
        steerer.set_policies(policies)?;
        if matches!(to, Steered::Policy(policy) if self.chosen[policy].auto) {
            let controller = match self.learned.take() {
                Some(controller) => controller,
                None => AutoController::new(Vec::new(), AUTO_SEED)?,
            };
            self.auto = Some(AutoSteering::start(controller, steerer)?);
        }
        Ok(())
    }

    /// The host's own scheduler stays; vCPUs get other slices if that is what the policy says.
    fn tune(&mut self, to: Steered) -> Result<(), Error> {
        let Steered::Policy(policy) = to else {
            return Ok(());
        };
        if let Some(slice) = self.chosen[policy].host_slice {
            let learned = self.tuning_learned.remove(&policy);
            let tuning = Tuning::start(slice, Vec::new(), learned).map_err(anyhow::Error::new)?;
            self.tuning = Some((policy, tuning));
        }
        Ok(())
    }

    /// Other VMs have started.
    pub fn vms_started(&mut self) {
        self.new_for = [Learner::Auto, Learner::Tune].into();
    }

    /// How long to wait for the policies `auto` and `tune` to learn what VMs need that have just started, which is said; 0 where they do
    /// not decide.
    pub fn learning(&mut self) -> Duration {
        let tunes = |(_, tuning): &(usize, Tuning)| tuning.learns();
        let learner = match &self.tuning {
            Some(tuning) if tunes(tuning) => Some(Learner::Tune),
            _ => self.auto.as_ref().map(|_| Learner::Auto),
        };
        let Some(learner) = learner.filter(|learner| self.new_for.remove(learner)) else {
            return Duration::ZERO;
        };
        let progress = self.session.progress;
        progress.say(&format!(
            "the policy {} learns what these VMs need",
            learner.name()
        ));
        LEARNING
    }

    /// What the policy `auto` has chosen, in words, by VM process; empty while it does not decide.
    pub fn chosen_by_auto(&self) -> Vec<(u32, String)> {
        let steerer = self.auto.as_ref().and(self.steerer.as_ref());
        let rows = steerer.and_then(|steerer| steerer.vm_policies().ok());
        let of_vms = rows.into_iter().flatten();
        of_vms
            .filter_map(|row| Some((row.process?, row.policy)))
            .collect()
    }

    /// Whoever thinks that a policy decides must not measure the host's own scheduler.
    ///
    /// # Errors
    /// When the kernel has sent our scheduler or the rival away.
    pub fn still_attached(&mut self) -> Result<(), Error> {
        if let Some(rival) = &mut self.rival {
            rival.still_attached()?;
        }
        // One that has ended by itself says why when it is asked to.
        if let Some(auto) = self.auto.take_if(|auto| auto.has_ended()) {
            self.learned = Some(auto.end()?);
        }
        if let Some((_, tuning)) = self.tuning.take_if(|(_, tuning)| tuning.has_ended()) {
            tuning.end()?;
        }
        let ended = self.steerer.as_ref().map(Steerer::ended).transpose();
        match ended?.flatten() {
            None => Ok(()),
            Some(end) => Err(anyhow!(
                "the kernel took its own scheduler back during a comparison: {}: {}\n{}",
                end.reason,
                end.message,
                end.dump
            )
            .into()),
        }
    }

    /// Who sets pause-loop windows then, if anybody.
    pub fn window(&self, to: Steered) -> Option<WindowPolicy> {
        match to {
            Steered::Not | Steered::RefuseYields | Steered::Rival(_) => None,
            Steered::Policy(policy) => self.chosen[policy].window,
        }
    }
}

/// What VMs have by their own, for a line of progress; empty where nobody has.
pub fn in_words(chosen: &[(u32, String)]) -> String {
    let each = chosen.iter().map(|(_, policy)| policy.as_str());
    match chosen {
        [] => String::new(),
        _ => format!(" (now {})", each.collect::<Vec<_>>().join("; ")),
    }
}
