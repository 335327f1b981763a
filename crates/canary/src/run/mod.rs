// SPDX-License-Identifier: MIT OR Apache-2.0
//! The phases one after the other, guards between them.

mod steering;

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use unspin_agent::{ChosenPolicies, SteerEnd, SteerError};
use unspin_experiment::{Column, Columns, Session, Steered, Step, Work, steps};

use crate::{
    Error, ProbeCommand,
    guard::{
        self, AUTO_LEARNS_FOR, Guard, Harm, Judged, Key, Limits, SETTLED_AFTER, WINDOW, Watch,
    },
    measured::{Measured, Outcome},
    phase::Phase,
    probe::Prober,
    reading::{Reader, Window},
    sleeper::Sleeper,
    verdict::{Compared, Shown},
};
use steering::{Attached, Trial};

/// A phase has three groups of windows at least, so that the first one guards the second.
pub const SAMPLE_MIN: Duration = Duration::from_secs(4);

/// What to try, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who decides while our scheduler has the host.
    pub chosen: ChosenPolicies,
    /// It has vCPU threads only.
    pub only_vms: bool,
    /// Phases of each scheduler.
    pub pairs: u32,
    /// How long a phase is measured.
    pub sample: Duration,
    /// What is left out after each change.
    pub discard: Duration,
    /// The user's own measure.
    pub probe: Option<ProbeCommand>,
    /// What is harm.
    pub limits: Limits,
    /// Whether what is good goes on until the session's interrupt.
    pub keep: bool,
}

impl Request {
    /// Whether phases are long enough for every guard, and enough for an interval. Without, [`run`] does what it can.
    ///
    /// # Errors
    /// What it may be.
    pub fn check(&self) -> Result<(), Error> {
        self.limits.check().map_err(Error::Usage)?;
        if self.sample < SAMPLE_MIN {
            return Err(Error::Usage(format!(
                "--sample: {} s at least, or a phase under the kernel's scheduler says too little to guard the next one",
                SAMPLE_MIN.as_secs()
            )));
        }
        match self.pairs {
            2.. => Ok(()),
            _ => Err(Error::Usage(
                "--pairs: 2 at least, or there is no interval".to_owned(),
            )),
        }
    }
}

/// Tries it. `better` is told as soon as all phases are over, before our scheduler gets the host once more to keep it ([`Request::keep`]).
///
/// # Errors
/// When nothing can be tried: the kernel's own scheduler has the host then.
pub fn run(
    request: Request,
    session: &Session<'_>,
    better: &mut dyn FnMut(&Measured),
) -> Result<Measured, Error> {
    // Refused before anybody waits for a phase.
    unspin_agent::Steerer::check()?;
    session.progress.begin("canary", Work::Unknown);
    let mut canary = Canary::begin(request, session)?;
    let done = canary.all(better);
    session.progress.end();
    done
}

struct Canary<'a> {
    request: Request,
    session: &'a Session<'a>,
    // Before all else when dropped: then the kernel's own scheduler is back.
    attached: Option<Attached>,
    trial: Trial,
    reader: Reader,
    sleeper: Sleeper,
    prober: Option<Prober>,
    watch: Watch,
    phases: Vec<Phase>,
    /// When the scheduler that has the host got it.
    changed: Instant,
}

/// Why the phases are over.
enum Stop {
    Harm(Harm),
    Interrupted,
}

impl<'a> Canary<'a> {
    fn begin(request: Request, session: &'a Session<'a>) -> Result<Canary<'a>, Error> {
        let prober = request.probe.clone().map(Prober::start).transpose()?;
        Ok(Canary {
            attached: None,
            trial: Trial::new(request.chosen.clone(), request.only_vms),
            reader: Reader::attach()?,
            sleeper: Sleeper::start()?,
            prober,
            watch: Watch::new(request.limits),
            phases: Vec::new(),
            changed: Instant::now(),
            request,
            session,
        })
    }

    fn all(&mut self, better: &mut dyn FnMut(&Measured)) -> Result<Measured, Error> {
        if let Some(stop) = self.every_phase()? {
            return Ok(self.measured(stop.into(), None));
        }
        let compared = Compared::of(&self.phases);
        let outcome = match compared.shows() {
            Shown::Better => Outcome::Better,
            Shown::NoDifference => Outcome::NoDifference,
            Shown::Worse(vm) => Outcome::Harm(worse(&compared, vm)),
        };
        let measured = self.measured(outcome, None);
        if measured.outcome != Outcome::Better || !self.request.keep {
            return Ok(measured);
        }
        better(&measured);
        self.session.progress.say("keeps steering; Ctrl-C ends it");
        let stop = self.change(true)?;
        let began = Instant::now();
        let stop = match stop {
            None => self.pass(None, None)?,
            stop => stop,
        };
        let outcome = match stop {
            Some(Stop::Harm(harm)) => Outcome::Harm(harm),
            _ => Outcome::Better,
        };
        self.change(false)?;
        Ok(self.measured(outcome, Some(began.elapsed())))
    }

    fn measured(&self, outcome: Outcome, kept: Option<Duration>) -> Measured {
        Measured {
            phases: self.phases.clone(),
            vms: self.reader.vms().to_vec(),
            unguarded: self.reader.unread(),
            compared: Compared::of(&self.phases),
            outcome,
            kept,
        }
    }

    /// The phases in order, the kernel's own scheduler afterwards.
    fn every_phase(&mut self) -> Result<Option<Stop>, Error> {
        let columns = Columns {
            ideal: false,
            null: false,
            policies: 1,
            unsteered: Default::default(),
            rivals: 0,
            steer: false,
        };
        // VMs that run already are found, and what they do first is left out.
        if let Some(stop) = self.pass(Some(self.request.discard), None)? {
            return Ok(Some(stop));
        }
        for step in steps(self.request.pairs as usize, columns) {
            let stop = match step {
                Step::Steer(to) => self.change(to != Steered::Not)?,
                Step::Discard => self.pass(Some(self.discard()), None)?,
                Step::Measure(column, pair) => self.phase(column != Column::Stock, pair)?,
                // The VMs are the host's own.
                Step::Load(_) | Step::Start(..) | Step::Explain | Step::Stop => None,
            };
            if stop.is_some() {
                return Ok(stop);
            }
        }
        Ok(None)
    }

    /// What is left out after a change: of `auto` that it learns.
    fn discard(&self) -> Duration {
        let learns_for = match &self.attached {
            Some(attached) => self.learns_for().saturating_sub(attached.since.elapsed()),
            None => Duration::ZERO,
        };
        self.request.discard.max(learns_for)
    }

    /// How long after an attach VMs may do less.
    fn learns_for(&self) -> Duration {
        match self.request.chosen.auto {
            true => AUTO_LEARNS_FOR,
            false => Duration::ZERO,
        }
    }

    /// Another scheduler, or the same if it has the host already.
    fn change(&mut self, steered: bool) -> Result<Option<Stop>, Error> {
        match (self.attached.take(), steered) {
            (Some(attached), true) => self.attached = Some(attached),
            (Some(attached), false) => {
                self.trial.detach(attached)?;
                self.changed = Instant::now();
            }
            (None, false) => {}
            (None, true) => {
                self.watch.begin();
                let began = Instant::now();
                let attached = match self.trial.attach() {
                    Err(SteerError::TakenBack { end }) => {
                        return Ok(Some(Stop::Harm(taken_back(*end, began.elapsed()))));
                    }
                    attached => attached?,
                };
                self.changed = attached.since;
                self.attached = Some(attached);
            }
        }
        // What was done during the change is of neither.
        self.read()?;
        Ok(None)
    }

    fn phase(&mut self, steered: bool, pair: usize) -> Result<Option<Stop>, Error> {
        let name = match steered {
            false => "the kernel's scheduler".to_owned(),
            true => format!("policy {}", self.request.chosen),
        };
        let say = format!("pair {} of {}, {name}", pair + 1, self.request.pairs);
        self.session.progress.say(&say);
        let mut phase = Phase::new(pair, steered);
        let mut windows = Vec::new();
        let stop = self.pass(Some(self.request.sample), Some((&mut phase, &mut windows)))?;
        if let Some(attached) = self.attached.as_ref().filter(|_| stop.is_none()) {
            phase.policies = attached.policies()?;
        }
        let line = crate::words::phase(&say, &phase);
        self.session.progress.line(&line);
        phase.whole = stop.is_none();
        let is_kernels = phase.whole && !steered;
        self.phases.push(phase);
        if is_kernels {
            self.has_measured_the_kernels(&windows)?;
        }
        Ok(stop)
    }

    /// Guards know what is usual from now on.
    fn has_measured_the_kernels(&mut self, windows: &[Window]) -> Result<(), Error> {
        let phase = self.phases.last().expect("it was measured just now");
        if phase.sum.vms.values().all(|vm| vm.guest_ns == 0) && self.phases.len() == 1 {
            return Err(Error::NoVms(phase.sum.length.as_secs_f64()));
        }
        let probe = Key {
            guard: Guard::Probe,
            vm: None,
        };
        let values = phase.probe.iter().map(|value| (probe, *value));
        if self.prober.is_some() && phase.probe.len() < guard::PROBE_VALUES_MIN {
            return Err(Error::Probe(format!(
                "it printed {} numbers in {:.0} s, and fewer than {} tell nothing: let it take less time, or make --sample longer",
                phase.probe.len(),
                phase.sum.length.as_secs_f64(),
                guard::PROBE_VALUES_MIN
            )));
        }
        let seen = windows.iter().flat_map(guard::figures);
        self.watch.kernel(seen.chain(values));
        Ok(())
    }

    /// Lets so much time pass (`None`: until it is stopped) and guards meanwhile. What is seen goes into the phase, if there is one.
    fn pass(
        &mut self,
        time: Option<Duration>,
        mut phase: Option<(&mut Phase, &mut Vec<Window>)>,
    ) -> Result<Option<Stop>, Error> {
        let began = Instant::now();
        loop {
            let left = time.map_or(WINDOW, |time| time.saturating_sub(began.elapsed()));
            // A window that is cut short would be like no other.
            if left < WINDOW / 2 {
                return Ok(None);
            }
            std::thread::sleep(left.min(WINDOW));
            if self.session.interrupt.load(Ordering::Relaxed) {
                self.change(false)?;
                return Ok(Some(Stop::Interrupted));
            }
            let window = self.read()?;
            let (values, failure) = self.probe(began);
            let harm = self.harm(&window, &values, failure)?;
            if let Some((phase, windows)) = &mut phase {
                phase.sum.add(&window);
                phase.probe.extend(values);
                if self.attached.is_none() {
                    windows.push(window);
                }
            }
            if harm.is_some() {
                return Ok(harm.map(Stop::Harm));
            }
        }
    }

    fn read(&mut self) -> Result<Window, Error> {
        let mut window = self.reader.read()?;
        window.late_ns = self.sleeper.take();
        Ok(window)
    }

    /// What the probe said: numbers of runs that began after that, and the failure of one that is of the scheduler that is there now.
    fn probe(&mut self, began: Instant) -> (Vec<f64>, Option<String>) {
        let runs = self.prober.as_ref().map(Prober::take).unwrap_or_default();
        let (mut values, mut failure) = (Vec::new(), None);
        for run in runs {
            // One that our scheduler may have broken says nothing of the kernel's.
            let last = match self.attached {
                Some(_) => run.ended,
                None => run.began,
            };
            match run.value {
                Ok(value) if run.began >= began => values.push(value),
                Err(says) if last >= self.changed => failure = Some(says),
                Ok(_) | Err(_) => {}
            }
        }
        (values, failure)
    }

    /// Asks the guards; where one of them says harm the host is given back at once.
    fn harm(
        &mut self,
        window: &Window,
        values: &[f64],
        failure: Option<String>,
    ) -> Result<Option<Harm>, Error> {
        let learns_for = self.learns_for();
        let Some(attached) = &mut self.attached else {
            return failure.map_or(Ok(None), |says| Err(Error::Probe(says)));
        };
        let since = attached.since;
        let harm = match (attached.ended()?, failure) {
            (Some(end), _) => Some(taken_back(end, since.elapsed())),
            (None, Some(says)) => Some(Harm {
                message: says,
                ..plain(Guard::ProbeFails, since.elapsed())
            }),
            (None, None) if since.elapsed() < SETTLED_AFTER => None,
            (None, None) => {
                let probe = Key {
                    guard: Guard::Probe,
                    vm: None,
                };
                let values = values.iter().map(|value| (probe, *value));
                let learns = since.elapsed() < learns_for;
                let seen = guard::figures(window).into_iter().chain(values);
                let seen = seen.filter(|(key, _)| !learns || key.guard.is_delay());
                let harm = self.watch.steered(seen);
                harm.map(|(key, judged)| of_figures(key, judged, since.elapsed()))
            }
        };
        let Some(mut harm) = harm else {
            return Ok(None);
        };
        // Even if `auto` fails at its end the kernel's own is back.
        let detached = self.change(false);
        harm.back_after = since.elapsed();
        detached?;
        Ok(Some(harm))
    }
}

impl From<Stop> for Outcome {
    fn from(stop: Stop) -> Outcome {
        match stop {
            Stop::Harm(harm) => Outcome::Harm(harm),
            Stop::Interrupted => Outcome::Interrupted,
        }
    }
}

fn plain(guard: Guard, after: Duration) -> Harm {
    Harm {
        guard,
        vm: None,
        judged: None,
        message: String::new(),
        end: None,
        seen_after: after,
        back_after: after,
    }
}

fn taken_back(end: SteerEnd, after: Duration) -> Harm {
    Harm {
        message: end.to_string(),
        end: Some(end),
        ..plain(Guard::TakenBack, after)
    }
}

fn of_figures(key: Key, judged: Judged, after: Duration) -> Harm {
    Harm {
        vm: key.vm,
        judged: Some(judged),
        ..plain(key.guard, after)
    }
}

/// All pairs together say so, after the last phase: the host is the kernel's own scheduler's already.
fn worse(compared: &Compared, vm: Option<usize>) -> Harm {
    let of = match vm {
        Some(vm) => compared.vms.get(&vm),
        None => compared.probe.as_ref(),
    };
    let judged = of.map(|of| Judged {
        kernel: 1.0,
        steered: of.ratio,
        limit: unspin_report::Harm::CELL,
    });
    Harm {
        vm,
        judged,
        ..plain(Guard::Pairs, Duration::ZERO)
    }
}
