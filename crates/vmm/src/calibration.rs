// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest's instructions and exits cost under this KVM, timed by a guest without any lock
//! (`native/calibration/calibration.c`).
use std::sync::Barrier;

use kvm_ioctls::VcpuFd;
use unspin_scenario::Scenario;

use crate::{
    Error, PauseLoop,
    host::Host,
    machine::{
        memory::statistics_address,
        parameters::Surroundings,
        vcpu::{self, Leave},
        vm::{Identity, Machine},
    },
    options::Fault,
};

/// The guest, built by build.rs.
static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/calibration.elf"));

// `struct request` of calibration.c.
const REQUEST_WORK: u64 = 0;
const REQUEST_CYCLES: u64 = 8;
const REQUEST_GAPS: u64 = 16;

/// What the guest can be asked to do; twin of `enum program` in calibration.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Program {
    /// Spins of the work loop.
    Work,
    /// Spins of a waiting loop, a PAUSE at every k-th.
    Wait,
    /// CPUID, which exits.
    Cpuid,
    /// WBINVD: on AMD an exit for which KVM does nothing.
    Wbinvd,
    /// A hypercall with a number that KVM does not know.
    Hypercall,
    /// An IPI to itself that stays pending.
    Send,
    /// An IPI to itself and its handler.
    Interrupt,
    /// The same with a HLT that it ends at once.
    Halt,
    /// Atomic additions to a word of its own.
    Add,
    /// The loop around these and nothing in it.
    Nothing,
    /// Looks at the TSC; the time is that of gaps between two, and they are counted.
    Gaps,
}

/// What a program took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// TSC cycles of the guest, which is the host's rate.
    pub cycles: u64,
    /// Of [`Program::Gaps`].
    pub gaps: u64,
}

/// A VM for calibration.
pub struct CalibrationVm {
    vcpus: Vec<VcpuFd>,
    machine: Machine,
    pause_loop: Option<PauseLoop>,
}

impl CalibrationVm {
    /// One with that many vCPUs (1 to 64). `host` says the pause-loop window as a scenario does; `pause_every_spins`
    /// (1 to 65,536) how often the waiting loop pauses; `pause_exits` whether that may exit.
    ///
    /// # Errors
    /// As [`crate::run()`] before it runs.
    pub fn create(
        host: &unspin_scenario::Host,
        vcpus: u32,
        pause_every_spins: u32,
        pause_exits: bool,
    ) -> Result<CalibrationVm, Error> {
        // The image has no lock: the key is there because scenarios want one.
        let text = format!(
            "iterations = 1\n[[vm]]\nvcpus = {vcpus}\nlock = \"ticket\"\nhold = \"1 loops\"\n\
             pause_every_spins = {pause_every_spins}\npause_exits = {pause_exits}\n"
        );
        let mut scenario = Scenario::parse(&text, "calibration").expect("it is well-formed");
        // The caller pins itself where it wants to measure.
        scenario.host = unspin_scenario::Host {
            cpus: None,
            ..host.clone()
        };
        let host = Host::open(&scenario)?;
        let identity = Identity {
            vm: &scenario.vms[0],
            group: 0,
            number: 0,
        };
        let surroundings = Surroundings {
            apic_timer_hz: host.apic_timer_hz,
            work_rate: None,
            tsc_hz: None,
            fault: Fault::None,
        };
        let (machine, vcpus) =
            Machine::create_with(IMAGE, &host, &scenario, identity, surroundings)?;
        Ok(CalibrationVm {
            vcpus,
            machine,
            pause_loop: host.pause_loop,
        })
    }

    /// PAUSEs from one exit to the next where KVM leaves an AMD window alone and loops count whatever their gap;
    /// `None` elsewhere: exits are not known without counting them.
    pub fn pauses_per_exit(&self) -> Option<u64> {
        let known = self.pause_loop.as_ref()?;
        let fixed = known.grow == 1 && known.shrink == 1;
        let counted = known.module == "kvm_amd" && known.window > 0 && fixed;
        // The exit comes with the PAUSE after those counted down (docs/emulator.md, AMD APM volume 2, 15.14.4).
        counted.then(|| u64::from(known.window) + 1)
    }

    /// Runs a program on vCPU 0, so many times, above 0.
    ///
    /// # Errors
    /// What the guest failed with.
    pub fn time(&mut self, program: Program, count: u32) -> Result<Took, String> {
        perform(&self.machine, &mut self.vcpus[0], 0, program, count)
    }

    /// Runs a program on the first `vcpus` of them at the same time, so many times each, on threads that `prepare`
    /// readies (it may confine them to a CPU); what `after` says of each thread when it is done.
    ///
    /// # Errors
    /// What the guest failed with.
    pub fn together<T: Send>(
        &mut self,
        vcpus: usize,
        program: Program,
        count: u32,
        prepare: impl Fn() + Sync,
        after: impl Fn() -> T + Sync,
    ) -> Result<Vec<(Took, T)>, String> {
        let machine = &self.machine;
        let (gate, prepare, after) = (&Barrier::new(vcpus), &prepare, &after);
        std::thread::scope(|scope| {
            let vcpus = self.vcpus.iter_mut().take(vcpus).enumerate();
            let threads: Vec<_> = vcpus
                .map(|(number, vcpu)| {
                    scope.spawn(move || {
                        prepare();
                        gate.wait();
                        let took = perform(machine, vcpu, number as u32, program, count)?;
                        Ok((took, after()))
                    })
                })
                .collect();
            let ended = threads.into_iter().map(|thread| {
                let ended = thread.join();
                ended.unwrap_or_else(|_| Err("a vCPU's thread panicked".into()))
            });
            ended.collect()
        })
    }

    /// Enters vCPU 0 only to be sent back by KVM before any guest instruction (`immediate_exit`): loading and putting a
    /// vCPU, so many times.
    ///
    /// # Errors
    /// When KVM does anything else.
    pub fn load_and_put(&mut self, count: u32) -> Result<(), String> {
        let vcpu = &mut self.vcpus[0];
        vcpu.set_kvm_immediate_exit(1);
        let mut ended = Ok(());
        for _ in 0..count {
            match vcpu.run() {
                Err(error) if error.errno() == libc::EINTR => {}
                other => ended = Err(format!("an immediate exit ended with {other:?}")),
            }
        }
        vcpu.set_kvm_immediate_exit(0);
        ended
    }
}

/// One request to one vCPU.
fn perform(
    machine: &Machine,
    vcpu: &mut VcpuFd,
    number: u32,
    program: Program,
    count: u32,
) -> Result<Took, String> {
    let request = statistics_address(number);
    let words = u64::from(program as u32) | u64::from(count) << 32;
    machine.memory.store(words, request + REQUEST_WORK);
    loop {
        match vcpu::run_once(vcpu) {
            Leave::Done => break,
            Leave::Again => {}
            Leave::Failed(failure) => return Err(format!("the calibration guest: {failure:?}")),
        }
    }
    Ok(Took {
        cycles: machine.memory.load_word(request + REQUEST_CYCLES),
        gaps: machine.memory.load_word(request + REQUEST_GAPS),
    })
}
