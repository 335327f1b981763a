// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host that is steered for a while: the scheduler, who sets windows and the log of decisions together, until it is over.

mod dry;
pub mod vm_choice;
mod windows;
mod words;

use std::{
    collections::BTreeSet,
    io,
    path::PathBuf,
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use unspin_policy::{
    EcsAccount, GuestAudit,
    auto::AutoStep,
    steering::{DecisionFile, DecisionFileError, DecisionRecord},
};
use unspin_report::row;

use crate::{
    AutoController, AutoSteering, ChosenPolicies, DeadlineServer, Error, KernelLog, MovedVm,
    SliceSource, SteerCounter, SteerEnd, SteerError, SteerOptions, Steerer, Until, VmPolicies,
    WindowError, WindowOptions, base_slice, deadline_server,
};
use windows::Windows;

pub use dry::{DryChoiceRow, DryCounterRow, DryFigures, dry_run};
pub use windows::{WindowEpochRow, WindowFigures, WindowVmRow};
pub use words::words;

/// What to do.
pub struct SteerRequest {
    /// Who decides.
    pub chosen: ChosenPolicies,
    /// How.
    pub options: SteerOptions,
    /// Who sets windows, or thresholds, if anybody.
    pub windows: Option<WindowOptions>,
    /// Where every decision is written to, if anywhere.
    pub log: Option<PathBuf>,
    /// What runs meanwhile, if anything.
    pub command: Option<Command>,
}

/// What whoever waits is told at once.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// There is no module that sets windows: guests are told thresholds.
    Thresholds,
    /// The scheduler is attached.
    Attached {
        /// A task's slice, ns.
        slice_ns: u64,
        /// Where that was found.
        source: SliceSource,
    },
    /// Only VMs are under the scheduler.
    OnlyVms {
        /// What the kernel keeps of each CPU for them beside busy tasks of other classes.
        server: DeadlineServer,
        /// Threads that a `steer` which was killed had left with `SCHED_EXT`: they were set back first.
        left_behind: usize,
    },
    /// What is under it, whenever that is more, once a second at most.
    Moved(Vec<MovedVm>),
    /// Windows are set, and the host's scheduler stays.
    WindowsAlone,
    /// Decisions are taken and none acted upon; what counts as a slice, ns.
    DryRun {
        /// A task's slice, ns.
        slice_ns: u64,
    },
    /// A guest does what no honest one does (`policy/classify/guest_audit.h`); once for each VM.
    Dishonest {
        /// The VM's process.
        process: u32,
        /// What it does.
        says: Vec<String>,
    },
    /// The policy `auto` has ended an epoch of a VM.
    Chosen(AutoStep),
    /// There is no KVM on this host: the policy `auto` has nothing to choose for.
    NoKvm,
    /// The kernel has taken its own scheduler back; a command that runs meanwhile goes on.
    TakenBack(SteerEnd),
}

/// Why a host was not steered, or not until the end.
#[derive(Debug, thiserror::Error)]
pub enum SteerRunError {
    /// The scheduler.
    #[error(transparent)]
    Steer(#[from] SteerError),
    /// Who sets windows.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// The log of decisions.
    #[error(transparent)]
    Log(#[from] DecisionFileError),
    /// What was to run meanwhile.
    #[error("starting {program}")]
    Command {
        /// Its name.
        program: String,
        /// Why it does not run.
        source: io::Error,
    },
    /// The log, or the command while it runs.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What was seen.
pub struct Steered {
    /// The scheduler's counters since it was attached; `None`: it was not wanted.
    pub counters: Option<Vec<SteerCounter>>,
    /// What each VM's guest claimed, by process; `None`: as above.
    pub guest_audit: Option<Vec<(u32, GuestAudit)>>,
    /// Who had which policies when it was over; `None`: the policy `auto` was not wanted.
    pub vm_policies: Option<Vec<VmPolicies>>,
    /// What was moved to the scheduler, by VM process; `None`: everything was its.
    pub moved: Option<Vec<MovedVm>>,
    /// Windows or thresholds that were set; `None`: nothing was.
    pub windows: Option<WindowFigures>,
    /// Why the kernel took its own scheduler back before the end, if it did; [`Notice::TakenBack`] has said it.
    pub end: Option<SteerEnd>,
    /// The command's, if there was one.
    pub status: Option<ExitStatus>,
}

/// Attaches, waits until `until` is over, detaches, and waits for the command, which outlives its scheduler.
///
/// # Errors
/// Says what is missing or in the way. The host's own scheduler is back then, and a command that was started may still run.
pub fn steer(
    request: SteerRequest,
    mut until: Until,
    notice: &mut dyn FnMut(Notice),
) -> Result<Steered, SteerRunError> {
    let mut log = request
        .log
        .as_deref()
        .map(DecisionFile::create)
        .transpose()?;
    let mut audit = Audit::default();
    // Windows first: where they cannot be set, the scheduler need not come and go for nothing.
    let mut windows = request.windows.as_ref().map(Windows::attach).transpose()?;
    if windows.as_ref().is_some_and(Windows::sets_thresholds) {
        notice(Notice::Thresholds);
    }
    let steerer = request
        .chosen
        .steers
        .then(|| Steerer::attach(&request.options));
    let steerer = steerer.transpose()?;
    notice(match &steerer {
        Some(steerer) => Notice::Attached {
            slice_ns: steerer.slice_ns(),
            source: base_slice()?.1,
        },
        None => Notice::WindowsAlone,
    });
    if let Some(steerer) = steerer.as_ref().filter(|_| request.options.only_vms) {
        notice(Notice::OnlyVms {
            server: deadline_server(),
            left_behind: steerer.left_behind(),
        });
    }
    let mut auto = match &steerer {
        Some(steerer) if request.chosen.auto => begin_auto(steerer, &request.options, notice)?,
        _ => None,
    };
    let mut moving = Moving::default();
    start(&mut until, request.command)?;
    let end = loop {
        let over = until.poll()?;
        if let Some(windows) = &mut windows {
            windows.poll()?;
        }
        let ended = match &steerer {
            Some(steerer) => {
                write_decisions(log.as_mut(), |each| steerer.drain_decisions(each))?;
                audit.poll(steerer, notice)?;
                moving.poll(steerer, notice);
                if let Some(auto) = auto.take_if(|auto| auto.has_ended()) {
                    auto.end()?;
                }
                auto.iter()
                    .flat_map(AutoSteering::steps)
                    .for_each(|step| notice(Notice::Chosen(step)));
                steerer.ended()?
            }
            None => None,
        };
        if let Some(end) = &ended {
            notice(Notice::TakenBack(end.clone()));
        }
        if ended.is_some() || over.is_some() {
            break ended;
        }
    };
    if let Some(steerer) = &steerer {
        write_decisions(log.as_mut(), |each| steerer.drain_decisions(each))?;
    }
    log.map(DecisionFile::finish).transpose()?;
    let vm_policies = match (&auto, &steerer) {
        (Some(_), Some(steerer)) => Some(steerer.vm_policies()?),
        _ => None,
    };
    drop(auto);
    let guest_audit = steerer.as_ref().map(|steerer| audit.poll(steerer, notice));
    let guest_audit = guest_audit.transpose()?;
    let counters = steerer.as_ref().map(Steerer::counters).transpose()?;
    let moved = steerer.as_ref().and_then(Steerer::moved);
    drop(steerer);
    let windows = windows.map(Windows::detach).transpose()?;
    Ok(Steered {
        counters,
        guest_audit,
        vm_policies,
        moved,
        windows,
        end,
        status: until.finish()?,
    })
}

impl SteerRunError {
    /// What the kernel printed where it refused programs; all of it.
    pub fn kernel_log(&self) -> Option<&KernelLog> {
        match self {
            SteerRunError::Steer(SteerError::Bpf(error)) => error.kernel_log(),
            _ => None,
        }
    }
}

/// The policy `auto` at work; `None`: there are no VMs on this host.
fn begin_auto(
    steerer: &Steerer,
    options: &SteerOptions,
    notice: &mut dyn FnMut(Notice),
) -> Result<Option<AutoSteering>, SteerRunError> {
    let controller = match AutoController::new(options.processes.clone(), std::process::id().into())
    {
        Ok(controller) => controller,
        Err(Error::KvmNotLoaded) => {
            notice(Notice::NoKvm);
            return Ok(None);
        }
        Err(error) => return Err(SteerError::from(error).into()),
    };
    Ok(Some(AutoSteering::start(controller, steerer)?))
}

fn start(until: &mut Until, command: Option<Command>) -> Result<(), SteerRunError> {
    let program = command.as_ref().map(Command::get_program);
    let program = program.map(|program| program.to_string_lossy().into_owned());
    until
        .start(command)
        .map_err(|source| SteerRunError::Command {
            program: program.unwrap_or_default(),
            source,
        })
}

/// Moves what was decided since the last call into the file, if there is one.
fn write_decisions(
    log: Option<&mut DecisionFile>,
    drain: impl FnOnce(&mut dyn FnMut(DecisionRecord)) -> Result<(), SteerError>,
) -> Result<(), SteerRunError> {
    let Some(log) = log else {
        return Ok(());
    };
    let mut written = Ok(());
    drain(&mut |record| {
        if written.is_ok() {
            written = log.add(&record);
        }
    })?;
    Ok(written?)
}

/// The processes that were named.
#[derive(Default)]
struct Audit(BTreeSet<u32>);

impl Audit {
    /// Names each VM once whose guest does what no honest one does; what all of them did.
    fn poll(
        &mut self,
        steerer: &Steerer,
        notice: &mut dyn FnMut(Notice),
    ) -> Result<Vec<(u32, GuestAudit)>, SteerError> {
        let all = steerer.guest_audit()?;
        for (process, guest_audit) in &all {
            let says = guest_audit.says();
            if !says.is_empty() && self.0.insert(*process) {
                notice(Notice::Dishonest {
                    process: *process,
                    says,
                });
            }
        }
        Ok(all)
    }
}

/// What was said of the threads that were moved.
#[derive(Default)]
struct Moving {
    said: Vec<MovedVm>,
    when: Option<Instant>,
}

impl Moving {
    /// Says what is under the scheduler, if that has changed.
    fn poll(&mut self, steerer: &Steerer, notice: &mut dyn FnMut(Notice)) {
        const PAUSE: Duration = Duration::from_secs(1);
        if self.when.is_some_and(|when| when.elapsed() < PAUSE) {
            return;
        }
        let moved = steerer.moved().unwrap_or_default();
        if moved != self.said {
            self.said.clone_from(&moved);
            self.when = Some(Instant::now());
            notice(Notice::Moved(moved));
        }
    }
}

row! {
    "guest_audit", ["steer"];
    /// What the guest of a VM process claimed and asked for.
    pub struct GuestAuditRow {
        /// The VM's process.
        pub process: String = ("VM process", Text),
        /// What its manager calls the VM, else its program's name; null: it has ended.
        pub name: Option<String> = ("VM", Text),
        /// Ends of slices at which its page was read.
        pub boundaries: u64 = ("slice ends", Count),
        /// Of these, those with a critical section claimed.
        pub claimed: u64 = ("claimed", Count),
        /// Loans and grants that it was told of.
        pub borrowed: u64 = ("loans, grants", Count),
        /// Of these, those that the clock ended.
        pub overrun: u64 = ("overrun", Count),
        /// Times that its page could not be read, or had no magic.
        pub page_failures: u64 = ("page failures", Count),
        /// Registrations of what is no page of its memory.
        pub bad_addresses: u64 = ("bad addresses", Count),
        /// Times that it gave back without owing anything.
        pub idle_calls: u64 = ("idle calls", Count),
        /// IPIs that its vCPUs sent one another, each once for all receivers; only where rules of candidates are loaded.
        pub sent: u64 = ("IPIs sent", Count),
        /// Receivers of these that were off their CPU and had not answered the last one.
        pub unanswered: u64 = ("unanswered", Count),
        /// CPU time of its vCPUs, where rules of candidates are loaded; ns.
        pub ran_ns: u64 = ("CPU time", Nanoseconds),
        /// What no honest guest does, with semicolons between; empty: nothing of that.
        pub says: String = ("what no honest guest does", Text),
    }
}

row! {
    "ecs", ["steer"];
    /// eCS's account of preemptions in critical sections (ruling 22), of all VMs whose guests say when they are in one.
    pub struct AccountRow {
        /// Ends of slices in a critical section, ends of grants and loans included.
        pub boundaries: u64 = ("ends of slices in one", Count),
        /// Of these, those at which the vCPU lost its CPU.
        pub descheduled: u64 = ("CPU lost there", Count),
        /// vCPUs pushed aside by a wake-up in a critical section.
        pub by_wakeup: u64 = ("pushed aside in one", Count),
        /// Share of `boundaries` at which the CPU was kept; percent.
        pub avoided: Option<f64> = ("avoided", Percent),
        /// Share of `descheduled` in all preemptions; percent.
        pub preempted_critical: Option<f64> = ("of all preemptions", Percent),
    }
}

/// What each VM's guest claimed, by process.
pub fn guest_audit(all: &[(u32, GuestAudit)]) -> impl Iterator<Item = GuestAuditRow> {
    all.iter().map(|(process, of)| GuestAuditRow {
        process: process.to_string(),
        name: unspin_vms::name_of(*process),
        boundaries: of.boundaries,
        claimed: of.claimed,
        borrowed: of.borrowed,
        overrun: of.overrun,
        page_failures: of.page_failures,
        bad_addresses: of.bad_addresses,
        idle_calls: of.idle_calls,
        sent: of.sent,
        unanswered: of.unanswered,
        ran_ns: of.ran_ns,
        says: of.says().join("; "),
    })
}

/// eCS's account of preemptions in critical sections (ruling 22).
pub fn account(counters: &[SteerCounter]) -> AccountRow {
    let value = |name: &str| {
        let found = counters.iter().find(|counter| counter.counter == name);
        found.map_or(0, |counter| counter.value)
    };
    let account = EcsAccount {
        boundaries: value("critical_ends"),
        descheduled: value("critical_lost"),
        by_wakeup: value("critical_pushed"),
    };
    let ended = value("ended");
    AccountRow {
        boundaries: account.boundaries,
        descheduled: account.descheduled,
        by_wakeup: account.by_wakeup,
        avoided: account.avoided_ppm().map(|ppm| ppm as f64 / 1e4),
        preempted_critical: (ended > 0).then(|| 100.0 * account.descheduled as f64 / ended as f64),
    }
}
