// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest under this KVM takes for its instructions and exits; it contains no lock.

use std::{cell::Cell, time::Instant};

use unspin_lockbench::costs::{SAMPLES, pin_to, switches_of_this_thread};
use unspin_scenario::Host;
use unspin_vmm::calibration::{CalibrationVm, Program};

use crate::Error;

/// Spins of a loop, of a try: 0.1 to 1 ms.
const LOOPS: u32 = 50_000;
/// Exits of a try: 20 us on hardware, a millisecond emulated, so that few tries meet a tick.
const EXITS: u32 = 20;
/// Pause-loop exits of a try.
const PAUSE_EXITS: u64 = 20;
/// Of each of two vCPUs on one CPU: KVM chooses none that has not been preempted, so several slices (milliseconds).
const PAIR_EXITS: u64 = 800;
/// Looks at the TSC in a try: some 20 ms, several ticks.
const LOOKS: u32 = 500_000;
/// Calls of KVM_RUN that return at once.
const LOADS: u32 = 100;
/// No PAUSE in so few spins.
const SELDOM: u32 = 65_536;

/// Times in ns, one entry for each try; empty: not to be had here.
#[derive(Clone, Debug, Default)]
pub struct GuestTimes {
    /// A spin of the work loop.
    pub work: Vec<f64>,
    /// A spin of the waiting loop, without and with PAUSE that does not exit.
    pub wait: Vec<f64>,
    /// See `wait`.
    pub wait_and_pause: Vec<f64>,
    /// An atomic addition to a word of its own, and the loop around it alone.
    pub add: Vec<f64>,
    /// See `add`.
    pub nothing: Vec<f64>,
    /// Round trips to KVM and back.
    pub cpuid: Vec<f64>,
    /// See `cpuid`.
    pub wbinvd: Vec<f64>,
    /// See `cpuid`.
    pub hypercall: Vec<f64>,
    /// An IPI to itself that stays pending; one that is handled; one that is handled and ends a HLT.
    pub send: Vec<f64>,
    /// See `send`.
    pub interrupt: Vec<f64>,
    /// See `send`.
    pub halt: Vec<f64>,
    /// What the host's tick takes of the guest.
    pub tick: Vec<f64>,
    /// A pause-loop exit where one other vCPU stands still, and where seven do.
    pub pause_exit_of_2: Vec<f64>,
    /// See `pause_exit_of_2`.
    pub pause_exit_of_8: Vec<f64>,
    /// One where the other vCPU waits for the same CPU, and switches for each of them.
    pub pause_exit_of_pair: Vec<f64>,
    /// See `pause_exit_of_pair`.
    pub pair_switches: Vec<f64>,
    /// Loading and putting a vCPU, with the system call around it.
    pub load_and_put: Vec<f64>,
}

/// Measures all of them on that CPU, where the caller is pinned; `tsc_mhz` is the TSC's rate.
///
/// # Errors
/// When KVM is not there or not as `host` says, or the guest fails.
pub fn measure(host: &Host, cpu: usize, tsc_mhz: f64) -> Result<GuestTimes, Error> {
    let mut times = GuestTimes::default();
    let meter = Meter { tsc_mhz };
    let mut loops = CalibrationVm::create(host, 1, SELDOM, false)?;
    times.work = meter.each(&mut loops, Program::Work, LOOPS)?;
    times.wait = meter.each(&mut loops, Program::Wait, LOOPS)?;
    times.nothing = meter.each(&mut loops, Program::Nothing, LOOPS)?;
    times.add = meter.each(&mut loops, Program::Add, LOOPS)?;
    drop(loops);
    let mut pauses = CalibrationVm::create(host, 1, 1, false)?;
    times.wait_and_pause = meter.each(&mut pauses, Program::Wait, LOOPS / 5)?;
    drop(pauses);
    let spin_ns = median(&times.wait_and_pause);

    let mut two = CalibrationVm::create(host, 2, 1, true)?;
    for (program, to) in [
        (Program::Cpuid, &mut times.cpuid),
        (Program::Wbinvd, &mut times.wbinvd),
        (Program::Hypercall, &mut times.hypercall),
        (Program::Send, &mut times.send),
        (Program::Interrupt, &mut times.interrupt),
        (Program::Halt, &mut times.halt),
    ] {
        *to = meter.each(&mut two, program, EXITS)?;
    }
    times.tick = meter.gaps(&mut two)?;
    times.load_and_put = load_and_put(&mut two)?;
    times.pause_exit_of_2 = meter.pause_exits(&mut two, spin_ns)?;
    let mut eight = CalibrationVm::create(host, 8, 1, true)?;
    times.pause_exit_of_8 = meter.pause_exits(&mut eight, spin_ns)?;
    drop(eight);
    (times.pause_exit_of_pair, times.pair_switches) = meter.pairs(&mut two, cpu, spin_ns)?;
    Ok(times)
}

struct Meter {
    tsc_mhz: f64,
}

impl Meter {
    fn ns(&self, cycles: u64) -> f64 {
        cycles as f64 * 1_000.0 / self.tsc_mhz
    }

    /// One of so many, in each try.
    fn each(
        &self,
        vm: &mut CalibrationVm,
        program: Program,
        count: u32,
    ) -> Result<Vec<f64>, Error> {
        let one = |_| {
            let took = vm.time(program, count).map_err(failed)?;
            Ok(self.ns(took.cycles) / f64::from(count))
        };
        (0..SAMPLES).map(one).collect()
    }

    /// The mean gap of each try that had any.
    fn gaps(&self, vm: &mut CalibrationVm) -> Result<Vec<f64>, Error> {
        let mut samples = Vec::new();
        for _ in 0..SAMPLES {
            let took = vm.time(Program::Gaps, LOOKS).map_err(failed)?;
            if took.gaps > 0 {
                samples.push(self.ns(took.cycles) / took.gaps as f64);
            }
        }
        Ok(samples)
    }

    /// What a pause-loop exit takes beyond the spins between two.
    fn pause_exits(&self, vm: &mut CalibrationVm, spin_ns: f64) -> Result<Vec<f64>, Error> {
        let Some((spins, per_exit)) = spins_of(vm, PAUSE_EXITS) else {
            return Ok(Vec::new());
        };
        let each = self.each(vm, Program::Wait, spins)?;
        let beyond = |ns: f64| ((ns - spin_ns) * per_exit as f64).max(0.0);
        Ok(each.into_iter().map(beyond).collect())
    }

    /// The same where two vCPUs have one CPU, and how often they switched for each exit.
    fn pairs(
        &self,
        vm: &mut CalibrationVm,
        cpu: usize,
        spin_ns: f64,
    ) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let Some((spins, per_exit)) = spins_of(vm, PAIR_EXITS) else {
            return Ok(Default::default());
        };
        thread_local!(static BEFORE: Cell<u64> = const { Cell::new(0) });
        let (mut times, mut switches) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            let prepare = || {
                // Both are the caller's children and may run where it may.
                let _ = pin_to(cpu);
                BEFORE.set(switches_of_this_thread());
            };
            let after = || switches_of_this_thread() - BEFORE.get();
            let both = vm
                .together(2, Program::Wait, spins, prepare, after)
                .map_err(failed)?;
            let longest_ns = both
                .iter()
                .map(|(took, _)| self.ns(took.cycles))
                .fold(0.0, f64::max);
            let switched: u64 = both.iter().map(|(_, switched)| switched).sum();
            let exits = 2 * u64::from(spins) / per_exit;
            times.push(longest_ns / exits as f64 - spin_ns * per_exit as f64);
            switches.push(switched as f64 / exits as f64);
        }
        Ok((times, switches))
    }
}

/// Spins with so many pause-loop exits, and PAUSEs for each; `None` where nobody knows.
fn spins_of(vm: &CalibrationVm, exits: u64) -> Option<(u32, u64)> {
    let per_exit = vm.pauses_per_exit()?;
    Some((u32::try_from(exits * per_exit).ok()?, per_exit))
}

fn load_and_put(vm: &mut CalibrationVm) -> Result<Vec<f64>, Error> {
    let one = |_| {
        let begin = Instant::now();
        vm.load_and_put(LOADS).map_err(failed)?;
        Ok(begin.elapsed().as_nanos() as f64 / f64::from(LOADS))
    };
    (0..SAMPLES).map(one).collect()
}

fn failed(reason: String) -> Error {
    Error::Failed(anyhow::anyhow!(reason))
}

/// The middle one; not a number of none.
pub fn median(samples: &[f64]) -> f64 {
    let mut samples = samples.to_vec();
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
