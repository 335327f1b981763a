// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUID of each vCPU: what this host's KVM supports, with the vCPU's own APIC id.
//!
//! Leaves: AMD64 Architecture Programmer's Manual volume 3, appendix E; Intel SDM volume 2, CPUID; KVM's own:
//! Documentation/virt/kvm/x86/cpuid.rst (Linux 7.2).
use kvm_bindings::{CpuId, kvm_cpuid_entry2};

const LEAF_FEATURES: u32 = 0x1;
const LEAF_TOPOLOGY: u32 = 0xb;
const LEAF_TOPOLOGY_V2: u32 = 0x1f;
const LEAF_KVM_SIGNATURE: u32 = 0x4000_0000;
const LEAF_KVM_FEATURES: u32 = 0x4000_0001;
/// VMware's leaf, which KVM leaves to the VMM: EAX, the TSC's rate in kHz.
const LEAF_TIMING: u32 = 0x4000_0010;
const LEAF_AMD_SIZES: u32 = 0x8000_0008;
const LEAF_AMD_TOPOLOGY: u32 = 0x8000_001e;

const FEATURE_X2APIC_ECX: u32 = 1 << 21;
const FEATURE_HYPERVISOR_ECX: u32 = 1 << 31;
const KVM_FEATURE_STEAL_TIME_EAX: u32 = 1 << 5;
const KVM_FEATURE_PV_UNHALT_EAX: u32 = 1 << 7;

/// What a run needs of [`crate::host`]'s CPUID, checked once.
///
/// Returns what is missing: the kernel's name of it, or `None`.
pub fn missing(supported: &[kvm_cpuid_entry2]) -> Option<&'static str> {
    let leaf = |function| supported.iter().find(|entry| entry.function == function);
    if leaf(LEAF_FEATURES).is_none_or(|entry| entry.ecx & FEATURE_X2APIC_ECX == 0) {
        return Some("x2APIC");
    }
    if leaf(LEAF_KVM_SIGNATURE).is_none() {
        return Some("KVM's CPUID signature");
    }
    if leaf(LEAF_KVM_FEATURES).is_none_or(|entry| entry.eax & KVM_FEATURE_STEAL_TIME_EAX == 0) {
        return Some("KVM_FEATURE_STEAL_TIME");
    }
    None
}

/// The CPUID of vCPU `vcpu` of `vcpus` (1 to 64): one package of that many cores of one thread each.
///
/// Without `halt_exits` a kick cannot end a HLT (KVM is not there): KVM_FEATURE_PV_UNHALT is not offered then. The TSC's rate
/// is told where it is known.
pub fn for_vcpu(
    supported: &CpuId,
    vcpu: u32,
    vcpus: u32,
    halt_exits: bool,
    tsc_khz: Option<u32>,
) -> CpuId {
    let mut cpuid = supported.clone();
    for entry in cpuid.as_mut_slice() {
        patch(entry, vcpu, vcpus);
        if entry.function == LEAF_KVM_FEATURES && !halt_exits {
            entry.eax &= !KVM_FEATURE_PV_UNHALT_EAX;
        }
    }
    if let Some(tsc_khz) = tsc_khz {
        tell_tsc_rate(&mut cpuid, tsc_khz);
    }
    cpuid
}

/// The leaf, and that there is one. A table that is full stays as it is: the rate is then not known.
fn tell_tsc_rate(cpuid: &mut CpuId, tsc_khz: u32) {
    let timing = kvm_cpuid_entry2 {
        function: LEAF_TIMING,
        eax: tsc_khz,
        ..Default::default()
    };
    cpuid.retain(|entry| entry.function != LEAF_TIMING);
    if cpuid.push(timing).is_err() {
        return;
    }
    let mut entries = cpuid.as_mut_slice().iter_mut();
    if let Some(signature) = entries.find(|entry| entry.function == LEAF_KVM_SIGNATURE) {
        signature.eax = signature.eax.max(LEAF_TIMING);
    }
}

fn patch(entry: &mut kvm_cpuid_entry2, vcpu: u32, vcpus: u32) {
    match entry.function {
        LEAF_FEATURES => {
            // Bits 31..24: APIC id; 23..16: logical processors of the package; the rest stays.
            entry.ebx = (entry.ebx & 0xffff) | (vcpus & 0xff) << 16 | vcpu << 24;
            entry.ecx |= FEATURE_HYPERVISOR_ECX;
        }
        LEAF_TOPOLOGY | LEAF_TOPOLOGY_V2 => entry.edx = vcpu,
        // Bits 7..0: cores of the package less one; 15..12: bits of an APIC id that number them.
        LEAF_AMD_SIZES => {
            let bits = vcpus.next_power_of_two().trailing_zeros();
            entry.ecx = (entry.ecx & !0xf0ff) | (vcpus - 1) | bits << 12;
        }
        // EAX: extended APIC id; EBX: core id, one thread per core; ECX: one node.
        LEAF_AMD_TOPOLOGY => (entry.eax, entry.ebx, entry.ecx) = (vcpu, vcpu & 0xff, 0),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(function: u32, eax: u32, ebx: u32, ecx: u32) -> kvm_cpuid_entry2 {
        kvm_cpuid_entry2 {
            function,
            eax,
            ebx,
            ecx,
            ..Default::default()
        }
    }

    fn host() -> Vec<kvm_cpuid_entry2> {
        vec![
            entry(0x1, 0xa10f11, 0x0102_0800, FEATURE_X2APIC_ECX | 1),
            entry(0xb, 1, 4, 0x100),
            entry(LEAF_KVM_SIGNATURE, LEAF_KVM_FEATURES, 0x4b4d_564b, 0),
            entry(
                LEAF_KVM_FEATURES,
                KVM_FEATURE_STEAL_TIME_EAX | KVM_FEATURE_PV_UNHALT_EAX,
                0,
                0,
            ),
            entry(LEAF_AMD_SIZES, 0x3030, 7, 0x7007),
            entry(LEAF_AMD_TOPOLOGY, 9, 0x0109, 0x0300),
        ]
    }

    #[test]
    fn a_vcpu_has_its_own_apic_id_in_every_leaf() {
        let supported = CpuId::from_entries(&host()).expect("six entries fit");
        for (vcpu, vcpus) in [(0, 1), (3, 4), (63, 64)] {
            let cpuid = for_vcpu(&supported, vcpu, vcpus, true, None);
            let leaf = |f| *cpuid.as_slice().iter().find(|e| e.function == f).unwrap();
            assert_eq!(leaf(1).ebx, vcpu << 24 | vcpus << 16 | 0x0800);
            assert_eq!(leaf(1).eax, 0xa10f11);
            assert_eq!(leaf(0xb).edx, vcpu);
            assert_eq!(leaf(LEAF_AMD_TOPOLOGY).eax, vcpu);
            assert_eq!(leaf(LEAF_AMD_SIZES).ecx & 0xff, vcpus - 1);
            assert!(1 << (leaf(LEAF_AMD_SIZES).ecx >> 12 & 0xf) >= vcpus);
            assert_eq!(leaf(LEAF_KVM_FEATURES), host()[3]);
            let in_guest = for_vcpu(&supported, vcpu, vcpus, false, None);
            let features = in_guest.as_slice().iter();
            let eax = features
                .filter(|e| e.function == LEAF_KVM_FEATURES)
                .map(|e| e.eax);
            assert_eq!(eax.collect::<Vec<_>>(), [KVM_FEATURE_STEAL_TIME_EAX]);
        }
    }

    #[test]
    fn the_tsc_rate_is_told_where_it_is_known() {
        let supported = CpuId::from_entries(&host()).expect("six entries fit");
        let eax = |tsc_khz, leaf| {
            let cpuid = for_vcpu(&supported, 0, 1, true, tsc_khz);
            let mut entries = cpuid.as_slice().iter();
            entries.find(|e| e.function == leaf).map(|e| e.eax)
        };
        assert_eq!(eax(None, LEAF_TIMING), None);
        assert_eq!(eax(None, LEAF_KVM_SIGNATURE), Some(LEAF_KVM_FEATURES));
        assert_eq!(eax(Some(2_450_000), LEAF_TIMING), Some(2_450_000));
        assert_eq!(eax(Some(2_450_000), LEAF_KVM_SIGNATURE), Some(LEAF_TIMING));
    }

    #[test]
    fn a_host_without_what_the_guest_uses_is_named() {
        assert_eq!(missing(&host()), None);
        let mut no_x2apic = host();
        no_x2apic[0].ecx = 0;
        assert_eq!(missing(&no_x2apic), Some("x2APIC"));
        let mut no_steal = host();
        no_steal[3].eax = 0;
        assert_eq!(missing(&no_steal), Some("KVM_FEATURE_STEAL_TIME"));
        assert_eq!(missing(&host()[..2]), Some("KVM's CPUID signature"));
    }
}
