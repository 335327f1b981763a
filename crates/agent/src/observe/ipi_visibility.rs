// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether this host's inter-processor interrupts can be seen at all: where hardware delivers them, KVM is not asked.

use std::{fs, path::Path};

use unspin_abi as abi;

use crate::{
    ObserveOptions,
    kernel::btf::{KernelBtf, Kind},
};

/// Tracepoints of KVM without which there is no record of IPIs.
pub(crate) const IPI_TRACEPOINTS: [&str; 3] =
    ["kvm_apic_ipi", "kvm_apic_accept_irq", "kvm_hypercall"];

/// What a record made with these options on this host says of inter-processor interrupts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpiVisibility {
    /// All that guests send through their local APIC or by `KVM_HC_SEND_IPI`.
    Visible,
    /// None, or only those that hardware could not deliver: no conclusion may be drawn from an IPI that is missing.
    Blind(String),
}

/// Looks at the options, the kernel's tracepoints and the parameters of KVM's modules. Needs no rights.
pub fn ipi_visibility(options: &ObserveOptions) -> IpiVisibility {
    let reason = why_blind(
        options.events.has(abi::UNSPIN_EVENT_IPI),
        &has_tracepoint,
        &|module, name| {
            let path = Path::new("/sys/module").join(module);
            fs::read_to_string(path.join("parameters").join(name)).ok()
        },
    );
    reason.map_or(IpiVisibility::Visible, IpiVisibility::Blind)
}

/// Whether KVM, as a module or built in, has that tracepoint.
pub(crate) fn has_tracepoint(name: &str) -> bool {
    kvm_has(&format!("btf_trace_{name}"), Kind::Typedef)
}

/// Whether KVM has that function with the arguments of its source: pahole leaves out those that the compiler changed.
pub(crate) fn has_function(name: &str) -> bool {
    kvm_has(name, Kind::Function)
}

fn kvm_has(name: &str, kind: Kind) -> bool {
    let btf = KernelBtf::module("kvm").or_else(KernelBtf::vmlinux);
    btf.is_some_and(|btf| btf.has(name, kind))
}

/// `parameter(module, name)`: the text of a module's parameter; `None` when there is no such module or parameter.
///
/// Linux 7.2: arch/x86/kvm/svm/avic.c (`avic` says "N" while it is undecided, and with `enable_ipiv` off hardware still
/// takes the write of the ICR and exits without a receiver), arch/x86/kvm/vmx/vmx.c (`enable_ipiv` needs `enable_apicv`).
fn why_blind(
    programs_loaded: bool,
    has_tracepoint: &dyn Fn(&str) -> bool,
    parameter: &dyn Fn(&str, &str) -> Option<String>,
) -> Option<String> {
    if !programs_loaded {
        return Some("the programs that see IPIs were left out".to_owned());
    }
    if let Some(missing) = IPI_TRACEPOINTS
        .into_iter()
        .find(|name| !has_tracepoint(name))
    {
        return Some(format!("this kernel's KVM has no tracepoint `{missing}`"));
    }
    let on = |module, name| {
        let value = parameter(module, name);
        value.is_some_and(|value| matches!(value.trim(), "Y" | "1"))
    };
    if on("kvm_amd", "avic") {
        return Some(
            "AVIC delivers IPIs without KVM (kvm_amd avic=Y); load kvm_amd with avic=0".to_owned(),
        );
    }
    if on("kvm_intel", "enable_apicv") && on("kvm_intel", "enable_ipiv") {
        return Some(
            "the processor delivers IPIs without KVM (kvm_intel enable_ipiv=Y); load kvm_intel with enable_ipiv=0"
                .to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blind(parameters: &[(&str, &str, &str)]) -> Option<String> {
        why_blind(true, &|_| true, &|module, name| {
            let found = parameters
                .iter()
                .find(|(of, called, _)| (*of, *called) == (module, name));
            found.map(|(_, _, value)| format!("{value}\n"))
        })
    }

    #[test]
    fn hardware_that_delivers_ipis_blinds() {
        assert_eq!(blind(&[]), None);
        assert_eq!(blind(&[("kvm_amd", "avic", "N")]), None);
        for on in ["Y", "1"] {
            let said = blind(&[("kvm_amd", "avic", on), ("kvm_amd", "enable_ipiv", "N")]);
            assert!(said.expect("blind").contains("avic=Y"));
        }
        let intel = |apicv, ipiv| {
            blind(&[
                ("kvm_intel", "enable_apicv", apicv),
                ("kvm_intel", "enable_ipiv", ipiv),
            ])
        };
        assert!(intel("Y", "Y").expect("blind").contains("enable_ipiv=Y"));
        for (apicv, ipiv) in [("Y", "N"), ("N", "Y"), ("N", "N")] {
            assert_eq!(intel(apicv, ipiv), None);
        }
        // Before 5.19 there is no enable_ipiv: nothing virtualises IPIs there.
        assert_eq!(blind(&[("kvm_intel", "enable_apicv", "Y")]), None);
    }

    #[test]
    fn programs_and_tracepoints_are_needed() {
        let none = |_: &str, _: &str| None;
        let said = why_blind(false, &|_| true, &none).expect("blind");
        assert!(said.contains("left out"), "{said}");
        for missing in IPI_TRACEPOINTS {
            let said = why_blind(true, &|name| name != missing, &none).expect("blind");
            assert!(said.contains(missing), "{said}");
        }
    }
}
