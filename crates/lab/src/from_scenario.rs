// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds a world from a scenario. Every error of the scenario is found here, before the world runs.

use serde::{
    Deserialize,
    de::value::{Error as WordError, MapDeserializer},
};
use unspin_policy::{
    CandidateRule, Control, Vendor, WindowRule,
    auto::{AUTO, AutoSet},
    steering::Policies,
    user_policy::{UserPolicySource, UserPolicySourceError},
};
use unspin_scenario::{LabEcs, LabSettings, LabVendor, Scenario};

use crate::{
    BuildError, LabHost, Paravirtual, SpinCount, SteeringModel, World,
    costs::Costs,
    host_noise::{NoiseModel, SHARE_MAX_PPM},
    scheduler::{HostScheduler, from_name, names::NameError},
    topology::Topology,
    trace_event::Observer,
};

/// The host scheduler of a scenario that names none: that of the newest kernel.
pub const DEFAULT_SCHEDULER: &str = "eevdf-7.2";
/// Number of pCPUs of a scenario that does not set it.
pub const DEFAULT_CPUS: u32 = 2;
/// The scheduler that steering policies steer.
const STEER: &str = "steer";

/// A checked lab: the scenario's host in the lab's own types.
#[derive(Clone, Debug)]
pub struct Lab {
    host: LabHost,
    costs: Costs,
    scheduler: String,
}

impl Lab {
    /// The lab for that scenario.
    ///
    /// # Errors
    /// Everything in the scenario that the lab does not have.
    pub fn new(scenario: &Scenario) -> Result<Lab, LabError> {
        let settings = scenario.lab.clone().unwrap_or_default();
        let topology = topology(scenario, &settings)?;
        let costs = costs(&settings)?;
        let lab = Lab {
            host: host(scenario, &settings, topology, &costs)?,
            costs,
            scheduler: settings
                .scheduler
                .clone()
                .unwrap_or_else(|| DEFAULT_SCHEDULER.to_owned()),
        };
        check_policy(&settings, &lab)?;
        check_noise(&lab.host)?;
        let cpus = topology.cpus();
        if let Some(cpu) = settings.pins.iter().flatten().find(|cpu| **cpu >= cpus) {
            return Err(LabError::Pin { cpu: *cpu, cpus });
        }
        lab.host_scheduler(scenario.seed)?;
        Ok(lab)
    }

    /// A world at time 0. `scenario` is the one from which this was made, or the same with another seed.
    ///
    /// # Errors
    /// A scenario that is too large.
    pub fn world<O: Observer>(
        &self,
        scenario: &Scenario,
        observer: O,
    ) -> Result<World<O>, LabError> {
        let scheduler = self.host_scheduler(scenario.seed)?;
        let (host, costs) = (self.host.clone(), self.costs.clone());
        Ok(World::new(scenario, host, costs, scheduler, observer)?)
    }

    fn host_scheduler(&self, seed: u64) -> Result<Box<dyn HostScheduler>, NameError> {
        from_name(&self.scheduler, self.host.topology, seed)
    }

    /// The host.
    pub fn host(&self) -> &LabHost {
        &self.host
    }

    /// Its costs.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Name of the host scheduler, with version and options.
    pub fn scheduler(&self) -> &str {
        &self.scheduler
    }
}

/// `lab.topology`, or `host.cpus` pCPUs that share one cache.
fn topology(scenario: &Scenario, settings: &LabSettings) -> Result<Topology, LabError> {
    let (found, cpus) = match settings.topology {
        Some(of) => (
            Topology::new(of.sockets, of.caches, of.cores, of.threads),
            of.cpus(),
        ),
        None => {
            let cpus = scenario.host.cpus.unwrap_or(DEFAULT_CPUS);
            (Topology::flat(cpus), cpus)
        }
    };
    found.ok_or(LabError::Topology { cpus })
}

/// The host in the lab's types; keys of `[host]` mean the same as for a real host.
fn host(
    scenario: &Scenario,
    settings: &LabSettings,
    topology: Topology,
    costs: &Costs,
) -> Result<LabHost, LabError> {
    let (vendor, window_unit_ps) = match settings.vendor {
        LabVendor::Amd => (
            Vendor::Amd,
            u64::from(costs.pause_ps) + u64::from(costs.wait_spin_ps),
        ),
        LabVendor::Intel => (Vendor::Intel, 1_000_000 / u64::from(costs.tsc_mhz)),
    };
    let control = match (&settings.window_control, scenario.host.ple_window_fixed) {
        (Some(name), _) => named("lab.window_control", name, &Control::ALL, Control::name)?,
        (None, true) => Control::Fixed,
        (None, false) => Control::Kvm,
    };
    let mut window = WindowRule::new(control, vendor);
    if let Some(base) = scenario.host.ple_window {
        window = window.with_base(base);
    }
    let default = LabHost::new(topology);
    let spin_count = match &settings.spin_count {
        Some(word) => SpinCount::from_word(word).ok_or_else(|| LabError::Word {
            key: "lab.spin_count",
            given: word.clone(),
            known: "apple, apple=DELTA/LOWER/INITIAL/UPPER, or a number of iterations".to_owned(),
        })?,
        None => default.spin_count,
    };
    // Only one APPLE at a time: its epochs consist of pause-loop exits or of waits that guests ended, not of both.
    if control == Control::Apple && matches!(spin_count, SpinCount::Apple(_)) {
        return Err(LabError::Word {
            key: "lab.spin_count",
            given: settings.spin_count.clone().unwrap_or_default(),
            known: "a number of iterations beside window_control = \"apple\"".to_owned(),
        });
    }
    let candidates = match &settings.candidates {
        Some(name) => named(
            "lab.candidates",
            name,
            &CandidateRule::ALL,
            CandidateRule::name,
        )?,
        None => default.candidates,
    };
    Ok(LabHost {
        vendor,
        window,
        window_unit_ps,
        spin_count,
        gap_cycles: scenario.host.ple_gap.unwrap_or(default.gap_cycles),
        candidates,
        ignore_reschedules: settings.ignore_reschedules,
        halt_poll_ns: settings.halt_poll_ns,
        cpu_hogs: settings.cpu_hogs,
        guest_tasks: settings.guest_tasks,
        page_fault_every_iterations: settings.page_fault_every_iterations,
        page_fetch_ns: settings
            .page_fetch_ns
            .map_or(default.page_fetch_ns, u64::from),
        async_page_faults: settings.async_page_faults,
        paravirtual: Paravirtual {
            tlb_flush: settings.pv_tlb_flush,
            sched_yield: settings.pv_sched_yield,
            send_ipi: settings.pv_send_ipi,
        },
        ecs: match settings.ecs {
            LabEcs::Off => None,
            LabEcs::Paper => Some(false),
            LabEcs::GiveBack => Some(true),
        },
        noise: NoiseModel::of(&settings.host_noise, !is_gang(settings)),
        skew_tick: settings.skew_tick,
        steering: steering(settings, default.steering)?,
        ..default
    })
}

/// The item of this name.
fn named<T: Copy>(
    key: &'static str,
    given: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, LabError> {
    let found = all.iter().find(|one| name(**one) == given);
    found.copied().ok_or_else(|| LabError::Word {
        key,
        given: given.to_owned(),
        known: all
            .iter()
            .map(|one| name(*one))
            .collect::<Vec<_>>()
            .join(", "),
    })
}

/// The parameters of unspin's scheduler.
fn steering(settings: &LabSettings, default: SteeringModel) -> Result<SteeringModel, LabError> {
    let auto = settings.policy.as_deref() == Some(AUTO);
    let policies = match &settings.policy {
        _ if auto => AutoSet::FIRST.policies(),
        Some(names) => self::policies(names)?,
        None => Policies::REFUSE_YIELDS,
    };
    Ok(SteeringModel {
        policies,
        auto,
        facts_age_ns: settings.facts_age_ns,
        lost_ppm: settings.lost_ppm,
        tick_only: settings.tick_only,
        poll_period_ns: settings
            .poll_period_ns
            .map_or(default.poll_period_ns, u64::from),
    })
}

/// Names of policies, and possibly the C file of a user policy, which is compiled and loaded now.
fn policies(names: &str) -> Result<Policies, LabError> {
    if names.split(',').any(|word| word == AUTO) {
        let alone = format!("`{AUTO}` chooses among policies itself: it goes alone");
        return Err(LabError::Steering(alone));
    }
    let (files, names): (Vec<&str>, Vec<&str>) =
        names.split(',').partition(|word| word.ends_with(".c"));
    let built_in = match (&files[..], &names[..]) {
        ([_, _, ..], _) => {
            let one = "one file with a user policy, no more";
            return Err(LabError::Steering(one.to_owned()));
        }
        ([_], []) => Policies::REFUSE_YIELDS,
        _ => names.join(",").parse().map_err(LabError::Steering)?,
    };
    match files.first() {
        None => Ok(built_in),
        Some(file) => Ok(built_in.with_loaded(UserPolicySource::at(file.as_ref())?.load()?)),
    }
}

/// Whether a VM's vCPUs are scheduled together.
fn is_gang(settings: &LabSettings) -> bool {
    let named = settings.scheduler.as_deref();
    named.is_some_and(|name| name.starts_with("gang"))
}

/// A gang is scheduled together: a policy that moves one of its tasks, or prolongs its slice, would starve another
/// gang.
fn check_gang(settings: &LabSettings, lab: &Lab) -> Result<(), LabError> {
    let refused = |key, because| Err(LabError::Gang { key, because });
    if !settings.pins.is_empty() {
        return refused(
            "pins",
            "which cannot run a task that may not run beside its gang",
        );
    }
    if lab.host.ecs.is_some() {
        return refused(
            "ecs",
            "where extra time is taken from the next part of the gang",
        );
    }
    Ok(())
}

/// What the host does besides running vCPUs must leave time for them.
fn check_noise(host: &LabHost) -> Result<(), LabError> {
    let Some(model) = &host.noise else {
        return Ok(());
    };
    let share_ppm = model.share_ppm();
    match share_ppm < SHARE_MAX_PPM {
        true => Ok(()),
        false => Err(LabError::Noise { share_ppm }),
    }
}

/// Steering policies need the scheduler that calls them.
fn check_policy(settings: &LabSettings, lab: &Lab) -> Result<(), LabError> {
    if is_gang(settings) {
        check_gang(settings, lab)?;
    }
    let scheduler = &lab.scheduler;
    let steers = scheduler.split('+').next() == Some(STEER);
    match &settings.policy {
        Some(policy) if !steers => Err(LabError::Policy {
            policy: policy.clone(),
            scheduler: scheduler.clone(),
        }),
        _ if steers && lab.host.ecs.is_some() => Err(LabError::Ecs),
        _ => Ok(()),
    }
}

/// The defaults, replaced where the scenario sets a value.
fn costs(settings: &LabSettings) -> Result<Costs, LabError> {
    let given = settings
        .costs
        .iter()
        .map(|(name, cost)| (name.as_str(), *cost));
    let costs =
        Costs::deserialize(MapDeserializer::<_, WordError>::new(given)).map_err(LabError::Costs)?;
    // With a cost of 0 a loop of the guest or of KVM would never end.
    const ABOVE_0: &str = "above 0, or time would stand still";
    for (name, value) in [
        ("work_loop_ps", costs.work_loop_ps),
        ("wait_spin_ps", costs.wait_spin_ps),
        ("pause_ps", costs.pause_ps),
        ("exit_ns", costs.exit_ns),
        ("entry_ns", costs.entry_ns),
        ("switch_ns", costs.switch_ns),
        ("line_hit_ns", costs.line_hit_ns),
        ("handler_ns", costs.handler_ns),
    ] {
        if value == 0 {
            let allowed = ABOVE_0;
            return Err(LabError::Cost {
                name,
                value,
                allowed,
            });
        }
    }
    for (name, value, most, allowed) in [
        ("tsc_mhz", costs.tsc_mhz, 100_000, "1 to 100000"),
        ("smt_speed", costs.smt_speed, 1_024, "1 to 1024"),
    ] {
        if !(1..=most).contains(&value) {
            return Err(LabError::Cost {
                name,
                value,
                allowed,
            });
        }
    }
    Ok(costs)
}

/// Why a scenario cannot run in the lab. Nothing has run yet.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// There is no such scheduler, or it has no such option.
    #[error("lab.scheduler: {0}")]
    Scheduler(#[from] NameError),
    /// There is no such value.
    #[error("{key}: there is no `{given}`; there are {known}")]
    Word {
        /// Key of the scenario.
        key: &'static str,
        /// The value that was given.
        given: String,
        /// The allowed values.
        known: String,
    },
    /// Another scheduler does not call policies.
    #[error(
        "lab.policy: `{policy}` needs the scheduler \"steer\", and {scheduler} calls no policies; set lab.scheduler = \"steer\""
    )]
    Policy {
        /// What was to steer.
        policy: String,
        /// The scheduler.
        scheduler: String,
    },
    /// Two mechanisms would decide the same.
    #[error(
        "lab.ecs: not under the scheduler \"steer\", whose policies decide; take one of lab.policy"
    )]
    Ecs,
    /// A VM's vCPUs must all have their pCPUs, or none.
    #[error("lab.{key}: not under the scheduler \"gang\", {because}; take another scheduler")]
    Gang {
        /// Key of the scenario.
        key: &'static str,
        /// The reason.
        because: &'static str,
    },
    /// A user policy does not compile or load.
    #[error("lab.policy: {0}")]
    Own(#[from] UserPolicySourceError),
    /// There is no such steering policy.
    #[error("lab.policy: {0}")]
    Steering(String),
    /// There is no such cost.
    #[error("lab.costs: {0}")]
    Costs(WordError),
    /// No time would be left for vCPUs.
    #[error(
        "lab.host_noise: interrupts and threads would take {} % of all CPU time, and may take less than {} %",
        share_ppm / 10_000,
        SHARE_MAX_PPM / 10_000
    )]
    Noise {
        /// What they take of all CPU time, parts per million.
        share_ppm: u64,
    },
    /// A cost with which simulated time would not advance.
    #[error("lab.costs: {name} cannot be {value}; {allowed}")]
    Cost {
        /// Its name.
        name: &'static str,
        /// The value that was given.
        value: u32,
        /// The allowed range.
        allowed: &'static str,
    },
    /// The host does not have this pCPU.
    #[error("lab.pins: there is no pCPU {cpu}; the host has {cpus}, from 0 on")]
    Pin {
        /// Its number.
        cpu: u32,
        /// The number of pCPUs.
        cpus: u32,
    },
    /// Too many pCPUs, or none.
    #[error(
        "lab.topology: no host of {cpus} pCPUs; 1 to {}",
        crate::topology::CPUS_MAX
    )]
    Topology {
        /// The number in the scenario.
        cpus: u32,
    },
    /// The scenario is too large for the engine or for memory.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl LabError {
    /// The scenario's key that it is about, as in `lab.policy`; empty where it is about the scenario as a whole.
    pub fn key(&self) -> String {
        match self {
            LabError::Scheduler(_) => "lab.scheduler".to_owned(),
            LabError::Word { key, .. } => (*key).to_owned(),
            LabError::Policy { .. } | LabError::Own(_) | LabError::Steering(_) => {
                "lab.policy".to_owned()
            }
            LabError::Ecs => "lab.ecs".to_owned(),
            LabError::Gang { key, .. } => format!("lab.{key}"),
            LabError::Costs(_) => "lab.costs".to_owned(),
            LabError::Noise { .. } => "lab.host_noise".to_owned(),
            LabError::Cost { name, .. } => format!("lab.costs.{name}"),
            LabError::Pin { .. } => "lab.pins".to_owned(),
            LabError::Topology { .. } => "lab.topology".to_owned(),
            LabError::Build(_) => String::new(),
        }
    }
}
