// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU: its first state, and the thread that runs it.
use std::io;

use kvm_bindings::{
    KVM_MP_STATE_RUNNABLE, KVM_VCPU_TSC_CTRL, KVM_VCPU_TSC_OFFSET, kvm_device_attr, kvm_mp_state,
};
use kvm_ioctls::{VcpuExit, VcpuFd};
use unspin_abi as abi;
use vmm_sys_util::ioctl::ioctl_with_ref;
use vmm_sys_util::ioctl_iow_nr;

use crate::{error::GuestFailure, host::Host, machine::registers};

// include/uapi/linux/kvm.h; kvm-ioctls 0.24 offers these two for vCPUs of arm64 only.
ioctl_iow_nr!(KVM_SET_DEVICE_ATTR, 0xae, 0xe1, kvm_device_attr);
ioctl_iow_nr!(KVM_GET_DEVICE_ATTR, 0xae, 0xe2, kvm_device_attr);

/// Brings a new vCPU to the guest's first instruction and returns its TSC offset.
///
/// # Errors
/// The step that failed, and what the kernel said.
pub fn prepare(
    vcpu: &VcpuFd,
    host: &Host,
    entry: u64,
    number: u32,
    vm: &unspin_scenario::Vm,
) -> Result<i64, (&'static str, io::Error)> {
    let step = |name| move |error: kvm_ioctls::Error| (name, io::Error::from(error));
    // CPUID first: KVM refuses x2APIC mode to a vCPU that does not have it.
    vcpu.set_cpuid2(&crate::host::cpuid::for_vcpu(
        &host.cpuid,
        number,
        vm.vcpus,
        vm.halt_exits,
        vcpu.get_tsc_khz().ok(),
    ))
    .map_err(step("KVM_SET_CPUID2"))?;
    let reset = vcpu.get_sregs().map_err(step("KVM_GET_SREGS"))?;
    vcpu.set_sregs(&registers::system(reset, number))
        .map_err(step("KVM_SET_SREGS"))?;
    vcpu.set_regs(&registers::general(entry, number))
        .map_err(step("KVM_SET_REGS"))?;
    // Without this all but vCPU 0 wait for an INIT that nobody sends.
    let runnable = kvm_mp_state {
        mp_state: KVM_MP_STATE_RUNNABLE,
    };
    vcpu.set_mp_state(runnable)
        .map_err(step("KVM_SET_MP_STATE"))?;
    if !host.tsc_offset {
        return Ok(0);
    }
    // A refusal is no failure: the offset in force is reported and every TSC value can be corrected by it.
    let _ = tsc_offset_ioctl(vcpu, KVM_SET_DEVICE_ATTR(), &mut 0);
    tsc_offset(vcpu).map_err(|error| ("KVM_GET_DEVICE_ATTR (TSC offset)", error))
}

/// What KVM adds to the host's TSC for this vCPU.
///
/// # Errors
/// The kernel's: ENXIO or ENOTTY before Linux 5.16.
pub fn tsc_offset(vcpu: &VcpuFd) -> io::Result<i64> {
    let mut offset = 0;
    tsc_offset_ioctl(vcpu, KVM_GET_DEVICE_ATTR(), &mut offset)?;
    Ok(offset as i64)
}

/// Sets or reads the vCPU's TSC offset (Documentation/virt/kvm/devices/vcpu.rst, 4.1; Linux 5.16).
fn tsc_offset_ioctl(vcpu: &VcpuFd, request: libc::c_ulong, offset: &mut u64) -> io::Result<()> {
    let attribute = kvm_device_attr {
        flags: 0,
        group: KVM_VCPU_TSC_CTRL,
        attr: KVM_VCPU_TSC_OFFSET.into(),
        addr: std::ptr::from_mut(offset) as u64,
    };
    // SAFETY: `vcpu` is a vCPU's descriptor, `attribute` lives through the call and `addr` is 8 bytes of `offset`.
    match unsafe { ioctl_with_ref(vcpu, request, &attribute) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Why KVM_RUN came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leave {
    /// The guest has finished (UNSPIN_PORT_DONE).
    Done,
    /// A signal, or nothing at all: look at the stop flag and go on.
    Again,
    /// The VM is over.
    Failed(GuestFailure),
}

/// Runs the guest until it leaves.
pub fn run_once(vcpu: &mut VcpuFd) -> Leave {
    /// The exit without what it borrows, so that registers can be read afterwards.
    enum Exit {
        Leave(Leave),
        Panic(u32),
        TripleFault,
        InternalError,
        Memory { address: u64, write: bool },
        Other(String),
        Error(io::Error),
    }
    let exit = match vcpu.run() {
        Ok(VcpuExit::IoOut(port, data)) => match port_write(port, data) {
            Some(PortWrite::Done) => Exit::Leave(Leave::Done),
            Some(PortWrite::Panic(value)) => Exit::Panic(value),
            None => Exit::Other(format!("OUT of {} bytes to port {port:#x}", data.len())),
        },
        Ok(VcpuExit::Intr) => Exit::Leave(Leave::Again),
        Ok(VcpuExit::Shutdown) => Exit::TripleFault,
        Ok(VcpuExit::InternalError) => Exit::InternalError,
        Ok(VcpuExit::FailEntry(reason, _)) => {
            Exit::Leave(Leave::Failed(GuestFailure::FailEntry { reason }))
        }
        Ok(VcpuExit::MmioRead(address, _)) => Exit::Memory {
            address,
            write: false,
        },
        Ok(VcpuExit::MmioWrite(address, _)) => Exit::Memory {
            address,
            write: true,
        },
        Ok(other) => Exit::Other(format!("{other:?}")),
        Err(error) => Exit::Error(error.into()),
    };
    let failure = match exit {
        Exit::Leave(leave) => return leave,
        Exit::Error(error) if is_retry(&error) => return Leave::Again,
        Exit::Panic(value) => panic(vcpu, value),
        Exit::TripleFault => GuestFailure::TripleFault {
            rip: rip_of_triple_fault(vcpu),
        },
        Exit::InternalError => GuestFailure::InternalError {
            suberror: internal_suberror(vcpu),
            rip: rip(vcpu),
        },
        Exit::Memory { address, write } => GuestFailure::OutsideMemory {
            address,
            write,
            rip: rip(vcpu),
        },
        Exit::Other(exit) => GuestFailure::UnexpectedExit {
            exit,
            rip: rip(vcpu),
        },
        Exit::Error(error) => GuestFailure::Run {
            errno: error.to_string(),
            rip: rip(vcpu),
        },
    };
    Leave::Failed(failure)
}

/// EINTR: a signal or `immediate_exit`. EAGAIN: KVM asks for another try (Documentation/virt/kvm/api.rst, 4.10).
fn is_retry(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
}

/// What the guest says through a port.
#[derive(Debug, PartialEq, Eq)]
enum PortWrite {
    Done,
    Panic(u32),
}

/// What a write to a port means; abi/guest/memory.h has two of them, each written with 32 bits.
fn port_write(port: u16, data: &[u8]) -> Option<PortWrite> {
    let value = u32::from_le_bytes(data.try_into().ok()?);
    match u32::from(port) {
        abi::UNSPIN_PORT_DONE => Some(PortWrite::Done),
        abi::UNSPIN_PORT_PANIC => Some(PortWrite::Panic(value)),
        _ => None,
    }
}

/// The guest's panic: `value` as it wrote it, the rest in RBX, RCX and RSI (abi/guest/memory.h).
fn panic(vcpu: &VcpuFd, value: u32) -> GuestFailure {
    let registers = vcpu.get_regs().unwrap_or_default();
    GuestFailure::Panic {
        code: value as u8,
        vector: (value >> 8) as u8,
        error_code: registers.rsi,
        cr2: registers.rcx,
        rip: registers.rbx,
    }
}

/// The vCPU's RIP, 0 if KVM does not tell.
pub fn rip(vcpu: &VcpuFd) -> u64 {
    vcpu.get_regs().map_or(0, |registers| registers.rip)
}

/// `None` when the vCPU is in the state after reset: real mode, as KVM leaves it after a shutdown on AMD.
fn rip_of_triple_fault(vcpu: &VcpuFd) -> Option<u64> {
    const LONG_MODE_ACTIVE: u64 = 1 << 10;
    let system = vcpu.get_sregs().ok()?;
    (system.efer & LONG_MODE_ACTIVE != 0).then(|| rip(vcpu))
}

fn internal_suberror(vcpu: &mut VcpuFd) -> u32 {
    // SAFETY: KVM_EXIT_INTERNAL_ERROR, which the caller has seen, makes `internal` the member in use.
    unsafe { vcpu.get_kvm_run().__bindgen_anon_1.internal.suberror }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_mean_what_the_guest_header_says() {
        assert_eq!(port_write(0x10, &[0, 0, 0, 0]), Some(PortWrite::Done));
        let panic = Some(PortWrite::Panic(0x0e02));
        assert_eq!(port_write(0x11, &[2, 14, 0, 0]), panic);
        for (port, data) in [(0x10, &[0u8][..]), (0x11, &[]), (0x80, &[0; 4])] {
            assert_eq!(port_write(port, data), None);
        }
    }
}
