// SPDX-License-Identifier: MIT OR Apache-2.0
//! One VM: memory, in-kernel local APICs, vCPUs at their first instruction.
use std::{io, sync::Arc};

use kvm_bindings::{
    KVM_CAP_SPLIT_IRQCHIP, KVM_CAP_X86_DISABLE_EXITS, KVM_X86_DISABLE_EXITS_HLT,
    KVM_X86_DISABLE_EXITS_PAUSE, kvm_enable_cap, kvm_userspace_memory_region,
};
use kvm_ioctls::{VcpuFd, VmFd};
use unspin_abi as abi;
use unspin_scenario::{PvPageMemory, Scenario, Vm};

use crate::{
    Error,
    host::Host,
    machine::{
        memory::{self, Memory},
        parameters::{self, Surroundings},
        vcpu,
    },
};

/// Where Intel's KVM may put its three pages for real mode (KVM_SET_TSS_ADDR): below 4 GiB and outside guest memory;
/// the address that QEMU uses. AMD ignores it.
const TSS_ADDRESS: usize = 0xfffb_d000;

/// One VM, ready to run.
pub struct Machine {
    /// Counted through all groups of the scenario.
    pub number: u32,
    /// `vm0`.
    pub name: String,
    /// Index of its group in `Scenario::vms`.
    pub group: usize,
    /// What `log_records` says.
    pub log_records: u32,
    /// TSC offset of each vCPU.
    pub tsc_offsets: Vec<i64>,
    /// The VM; the last of it and its vCPUs to be dropped takes it down. Dropped before the memory it runs in.
    _vm: VmFd,
    /// Guest memory.
    pub memory: Arc<Memory>,
}

/// What tells one VM from the others.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    /// Its group.
    pub vm: &'a Vm,
    /// Index of its group in `Scenario::vms`.
    pub group: usize,
    /// Counted through all groups.
    pub number: u32,
}

impl Machine {
    /// Creates the VM and its vCPUs, each at its first instruction.
    ///
    /// # Errors
    /// `Create` with the step that failed; `LogTooLarge`, `WorkTooLong`, `Image`.
    pub fn create(
        host: &Host,
        scenario: &Scenario,
        identity: Identity,
        surroundings: Surroundings,
    ) -> Result<(Machine, Vec<VcpuFd>), Error> {
        Self::create_with(memory::GUEST_IMAGE, host, scenario, identity, surroundings)
    }

    /// The same with another guest, which keeps to abi/guest/memory.h.
    pub fn create_with(
        image: &[u8],
        host: &Host,
        scenario: &Scenario,
        identity: Identity,
        surroundings: Surroundings,
    ) -> Result<(Machine, Vec<VcpuFd>), Error> {
        let name = format!("vm{}", identity.number);
        let failed = |step, source| Error::Create {
            vm: name.clone(),
            step,
            source,
        };
        let block = parameters::build(scenario, identity.vm, identity.number, surroundings)?;
        let mut memory = Memory::new().map_err(|error| failed("mapping its memory", error))?;
        if let (PvPageMemory::Map, Some(pages)) = (identity.vm.pv_page_memory, &host.pv_pages) {
            let taken = memory.take_pv_pages(pages, identity.vm.vcpus);
            taken.map_err(|error| failed("mapping the host's pv pages", error))?;
        }
        let entry = memory.load(image, &block)?;
        let vm = create_vm(host, identity.vm, &memory).map_err(|(s, e)| failed(s, e))?;
        let (vcpus, tsc_offsets) = (0..identity.vm.vcpus)
            .map(|number| create_vcpu(&vm, host, entry, number, identity.vm))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|(step, error)| failed(step, error))?
            .into_iter()
            .unzip();
        let machine = Machine {
            number: identity.number,
            group: identity.group,
            log_records: identity.vm.log_records,
            tsc_offsets,
            memory: Arc::new(memory),
            _vm: vm,
            name,
        };
        Ok((machine, vcpus))
    }
}

type Failed = (&'static str, io::Error);

fn create_vm(host: &Host, wanted: &Vm, memory: &Memory) -> Result<VmFd, Failed> {
    let step = |name| move |error: kvm_ioctls::Error| (name, io::Error::from(error));
    let vm = host.kvm.create_vm().map_err(step("KVM_CREATE_VM"))?;
    let mut disabled = 0;
    disabled |= if wanted.pause_exits {
        0
    } else {
        KVM_X86_DISABLE_EXITS_PAUSE
    };
    disabled |= if wanted.halt_exits {
        0
    } else {
        KVM_X86_DISABLE_EXITS_HLT
    };
    if disabled != 0 {
        let mut capability = kvm_enable_cap {
            cap: KVM_CAP_X86_DISABLE_EXITS,
            ..Default::default()
        };
        capability.args[0] = disabled.into();
        // Before the first vCPU: KVM looks at it when it makes one.
        vm.enable_cap(&capability)
            .map_err(step("KVM_CAP_X86_DISABLE_EXITS"))?;
    }
    vm.set_tss_address(TSS_ADDRESS)
        .map_err(step("KVM_SET_TSS_ADDR"))?;
    local_apics_in_kernel(&vm).map_err(step("KVM_CAP_SPLIT_IRQCHIP"))?;
    let region = kvm_userspace_memory_region {
        slot: 0,
        flags: 0,
        guest_phys_addr: 0,
        memory_size: abi::UNSPIN_GUEST_MEMORY_BYTES.into(),
        userspace_addr: memory.host_address() as u64,
    };
    // SAFETY: the region is one mapping of just that size, which `Memory` alone owns. It outlives every run of a vCPU:
    // `Fleet` joins all vCPU threads before it drops any memory.
    unsafe { vm.set_user_memory_region(region) }.map_err(step("KVM_SET_USER_MEMORY_REGION"))?;
    Ok(vm)
}

/// The local APICs in the kernel, and no PIC, I/O APIC or PIT at all: the guest has no device. KVM_CREATE_IRQCHIP would
/// register four devices on its buses, each at the price of a grace period.
fn local_apics_in_kernel(vm: &VmFd) -> Result<(), kvm_ioctls::Error> {
    // args[0], routes reserved for an I/O APIC in user space: none.
    vm.enable_cap(&kvm_enable_cap {
        cap: KVM_CAP_SPLIT_IRQCHIP,
        ..Default::default()
    })
}

fn create_vcpu(
    vm: &VmFd,
    host: &Host,
    entry: u64,
    number: u32,
    wanted: &Vm,
) -> Result<(VcpuFd, i64), Failed> {
    let vcpu = vm
        .create_vcpu(number.into())
        .map_err(|error| ("KVM_CREATE_VCPU", error.into()))?;
    let tsc_offset = vcpu::prepare(&vcpu, host, entry, number, wanted)?;
    Ok((vcpu, tsc_offset))
}
