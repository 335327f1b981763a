// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong when VMs run, said so that the reader knows what to do.
use std::io;

use unspin_abi as abi;

/// Why a run ended without a report. By then every VM of the run is gone and no vCPU thread is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no `/dev/kvm`.
    #[error(
        "this machine has no /dev/kvm: load kvm_amd or kvm_intel, or run the command in the testbed \
         (`unspin testbed run -- ...`); `unspin doctor` says which is possible"
    )]
    NoKvm,
    /// The host's TSC or CLOCK_MONOTONIC stood still during the run.
    #[error("the clocks did not go on while the VMs ran")]
    Clock(#[source] unspin_events::ClockError),
    /// `/dev/kvm` refuses this user.
    #[error(
        "/dev/kvm refuses this user: run as root, or join the group that owns it (often `kvm`)"
    )]
    NoPermission,
    /// `/dev/kvm` cannot be opened for another reason.
    #[error("/dev/kvm cannot be opened: {0}")]
    OpenKvm(#[source] io::Error),
    /// Not the stable interface of KVM.
    #[error(
        "this kernel's KVM speaks API version {found}, not 12: a kernel of at least 2.6.22 is needed"
    )]
    OldKvm {
        /// What KVM_GET_API_VERSION said.
        found: i32,
    },
    /// KVM lacks something that a run cannot do without.
    #[error("this kernel's KVM lacks {capability} ({purpose}); Linux has it since {since}")]
    MissingCapability {
        /// The kernel's name of it.
        capability: &'static str,
        /// What it is needed for.
        purpose: &'static str,
        /// The first kernel release with it.
        since: &'static str,
    },
    /// The scenario asks for more vCPUs than KVM gives a VM.
    #[error("a VM of {wanted} vCPUs: this host's KVM allows {most}")]
    TooManyVcpus {
        /// What the scenario says.
        wanted: u32,
        /// What KVM says.
        most: usize,
    },
    /// `host.cpus` of the scenario is more than there are.
    #[error("the scenario wants {wanted} host CPUs (host.cpus), this process may use {available}")]
    HostCpus {
        /// What the scenario says.
        wanted: u32,
        /// CPUs that the process may use.
        available: u32,
    },
    /// The pause-loop parameters of the loaded module are not those of the scenario.
    #[error(
        "the scenario wants {parameter} = {wanted}, {module} runs with {found}: it can only be set when the module \
         is loaded and unspin does not reload a host's module; change the scenario, reload {module} \
         {parameter}={wanted} yourself with no VM running, or use `unspin testbed run`, which loads it so"
    )]
    PauseLoop {
        /// `kvm_amd` or `kvm_intel`.
        module: &'static str,
        /// The module parameter.
        parameter: &'static str,
        /// What the scenario says.
        wanted: u32,
        /// What the module says.
        found: u32,
    },
    /// The scenario states a window and no module with such a parameter is loaded.
    #[error(
        "the scenario states a pause-loop window, but neither kvm_amd nor kvm_intel is loaded here: \
         this KVM has no pause-loop exits"
    )]
    NoPauseLoop,
    /// KVM's limit on periodic timers is above the scenario's period.
    #[error(
        "tick_hz = {wanted}: this host's KVM fires periodic timers at most {most} times a second \
         (kvm.min_timer_period_us)"
    )]
    TickRate {
        /// What the scenario says.
        wanted: u32,
        /// What `min_timer_period_us` allows.
        most: u32,
    },
    /// The log does not fit into guest memory.
    #[error("log_records = {records} for {vcpus} vCPUs: {most} per vCPU fit into guest memory")]
    LogTooLarge {
        /// What the scenario says.
        records: u32,
        /// vCPUs of that VM.
        vcpus: u32,
        /// What would fit.
        most: u32,
    },
    /// A value of a distribution, in loops, exceeds 32 bits.
    #[error("{distribution}: {value} {unit} are more than 2^32 - 1 loops of the work loop")]
    WorkTooLong {
        /// The scenario's key.
        distribution: &'static str,
        /// The value that does not fit.
        value: u64,
        /// Its unit.
        unit: &'static str,
    },
    /// Memory for a VM, or a thread.
    #[error("{vm}: {step} failed: {source}")]
    Create {
        /// The VM's name.
        vm: String,
        /// Which step of its creation.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The micro guest's image cannot be loaded: a fault of the build.
    #[error("the micro guest's image is not usable: {0}")]
    Image(String),
    /// A guest did what ends it.
    #[error("{vm}: vCPU {vcpu} {failure} (guest state: {state})")]
    Guest {
        /// The VM's name.
        vm: String,
        /// Its vCPU.
        vcpu: u32,
        /// What happened.
        failure: GuestFailure,
        /// What the guest said it was doing.
        state: &'static str,
    },
    /// A vCPU has not executed an instruction of the guest in time.
    #[error("{vm}: vCPU {vcpu} has not started within {waited_ms} ms")]
    NotStarted {
        /// The VM's name.
        vm: String,
        /// Its vCPU.
        vcpu: u32,
        /// The limit.
        waited_ms: u64,
    },
    /// A vCPU went on after it was told to stop.
    #[error(
        "{vm}: vCPU {vcpu} has not stopped within {waited_ms} ms (guest state: {state}, RIP {rip:#x})"
    )]
    NotStopped {
        /// The VM's name.
        vm: String,
        /// Its vCPU.
        vcpu: u32,
        /// The limit.
        waited_ms: u64,
        /// What the guest said it was doing.
        state: &'static str,
        /// Where it was when it was taken out of the guest; 0 if that is unknown.
        rip: u64,
    },
    /// `RunOptions::interrupt` was set.
    #[error("interrupted: all VMs have been stopped")]
    Interrupted,
}

/// What a vCPU did that ends its VM.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuestFailure {
    /// KVM_EXIT_SHUTDOWN. AMD processors lose the registers at a shutdown, and KVM resets the vCPU
    /// (shutdown_interception in arch/x86/kvm/svm/svm.c): then there is no RIP to tell.
    #[error("took a triple fault at {}", match .rip { Some(rip) => format!("RIP {rip:#x}"), None => "a RIP that the processor does not tell".to_string() })]
    TripleFault {
        /// Where, if it is known.
        rip: Option<u64>,
    },
    /// The guest gave up by itself (UNSPIN_PORT_PANIC).
    #[error(
        "panicked: {} (vector {vector}, error code {error_code:#x}, CR2 {cr2:#x}) at RIP {rip:#x}",
        panic_name(*.code)
    )]
    Panic {
        /// `enum unspin_guest_panic`, as the guest wrote it.
        code: u8,
        /// The exception's vector, for UNSPIN_PANIC_EXCEPTION.
        vector: u8,
        /// Of the exception; 0 without one.
        error_code: u64,
        /// The address of the last page fault.
        cr2: u64,
        /// Where.
        rip: u64,
    },
    /// KVM_EXIT_INTERNAL_ERROR.
    #[error("raised KVM's internal error {suberror} at RIP {rip:#x}")]
    InternalError {
        /// KVM_INTERNAL_ERROR_*.
        suberror: u32,
        /// Where.
        rip: u64,
    },
    /// KVM_EXIT_FAIL_ENTRY.
    #[error("cannot be entered: hardware reason {reason:#x}")]
    FailEntry {
        /// The processor's code.
        reason: u64,
    },
    /// An access outside guest memory.
    #[error("{} guest physical address {address:#x}, where there is nothing, at RIP {rip:#x}", if *.write { "wrote to" } else { "read from" })]
    OutsideMemory {
        /// Guest physical.
        address: u64,
        /// Or a read.
        write: bool,
        /// Where.
        rip: u64,
    },
    /// Any other exit to user space.
    #[error("left the guest for a reason that nothing expects: {exit} at RIP {rip:#x}")]
    UnexpectedExit {
        /// Which.
        exit: String,
        /// Where.
        rip: u64,
    },
    /// KVM_RUN itself failed.
    #[error("cannot run: KVM_RUN says {errno} at RIP {rip:#x}")]
    Run {
        /// The error's text.
        errno: String,
        /// Where.
        rip: u64,
    },
}

/// The words for `enum unspin_guest_panic`.
fn panic_name(code: u8) -> &'static str {
    match u32::from(code) {
        abi::UNSPIN_PANIC_PARAMETERS => "its parameter block is not acceptable",
        abi::UNSPIN_PANIC_EXCEPTION => "an exception that nothing expects",
        abi::UNSPIN_PANIC_EXCLUSION => "two vCPUs were inside one lock",
        _ => "for a reason that this version does not know",
    }
}

/// The words for `enum unspin_guest_state`, for messages; any other number is the guest's fault.
pub(crate) fn state_name(state: u32) -> &'static str {
    match state {
        abi::UNSPIN_STATE_BOOT => "boot",
        abi::UNSPIN_STATE_USER => "user",
        abi::UNSPIN_STATE_KERNEL => "kernel",
        abi::UNSPIN_STATE_WAITING => "waiting for a lock",
        abi::UNSPIN_STATE_HOLDING => "holding a lock",
        abi::UNSPIN_STATE_SHOOTDOWN => "waiting for a shootdown's answers",
        abi::UNSPIN_STATE_HALTED => "halted",
        abi::UNSPIN_STATE_DONE => "done",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_where_and_what() {
        let failure = GuestFailure::TripleFault {
            rip: Some(0x201000),
        };
        let error = Error::Guest {
            vm: "vm3".into(),
            vcpu: 7,
            failure,
            state: state_name(abi::UNSPIN_STATE_HOLDING),
        };
        assert_eq!(
            error.to_string(),
            "vm3: vCPU 7 took a triple fault at RIP 0x201000 (guest state: holding a lock)"
        );
        let lost = GuestFailure::TripleFault { rip: None }.to_string();
        assert!(lost.contains("does not tell"), "{lost}");
        let panic = GuestFailure::Panic {
            code: abi::UNSPIN_PANIC_EXCEPTION as u8,
            vector: 14,
            error_code: 2,
            cr2: 0x1000,
            rip: 0x200010,
        };
        assert_eq!(
            panic.to_string(),
            "panicked: an exception that nothing expects (vector 14, error code 0x2, CR2 0x1000) at RIP 0x200010"
        );
    }
}
