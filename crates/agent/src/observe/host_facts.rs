// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of the host before the first event: both clocks, KVM's parameters, what the record will not see.

use std::{collections::BTreeMap, fs, path::Path, time::SystemTime};

use unspin_events::{
    KIND_NAMES,
    facts::{BeginTime, Facts, IpiSight, KvmFacts},
};

use crate::{
    IpiVisibility, ObserveOptions,
    observe::{ipi_visibility::ipi_visibility, threads::monotonic_ns},
};

/// Modules of one kind of processor, then what both share.
const VENDORS: [&str; 2] = ["kvm_amd", "kvm_intel"];

/// Parameters that decide what a pause loop, a halt or an interrupt costs, and who sees it (Linux 7.2:
/// arch/x86/kvm/svm/svm.c, svm/avic.c, vmx/vmx.c, virt/kvm/kvm_main.c).
const PARAMETERS: [(&str, &[&str]); 3] = [
    (
        "kvm_amd",
        &[
            "avic",
            "pause_filter_count",
            "pause_filter_count_grow",
            "pause_filter_count_max",
            "pause_filter_count_shrink",
            "pause_filter_thresh",
        ],
    ),
    (
        "kvm_intel",
        &[
            "enable_apicv",
            "enable_ipiv",
            "ple_gap",
            "ple_window",
            "ple_window_grow",
            "ple_window_max",
            "ple_window_shrink",
        ],
    ),
    ("kvm", &["halt_poll_ns"]),
];

/// The facts as they are when an observation with these options begins. VMs and tasks are added by
/// [`Names`](crate::Names).
pub fn host_facts(options: &ObserveOptions) -> Facts {
    let blind = match ipi_visibility(options) {
        IpiVisibility::Visible => None,
        IpiVisibility::Blind(reason) => Some(reason),
    };
    let asked = (0u32..).zip(KIND_NAMES);
    Facts {
        begin: now(),
        kvm: kvm_facts(Path::new("/sys/module")),
        ipi: IpiSight { blind },
        kinds: asked
            .filter(|(kind, _)| options.events.has(*kind))
            .map(|(_, name)| name.to_owned())
            .collect(),
        ..Facts::default()
    }
}

fn now() -> BeginTime {
    let since_1970 = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    BeginTime {
        monotonic_ns: monotonic_ns(),
        unix_ns: u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX),
    }
}

/// The parameters of the modules in `modules`; those of a module that is not loaded are left out.
fn kvm_facts(modules: &Path) -> KvmFacts {
    let is_loaded = |module: &&str| modules.join(module).is_dir();
    let mut parameters = BTreeMap::new();
    for (module, names) in PARAMETERS {
        if !is_loaded(&module) {
            continue;
        }
        for name in names {
            let value = fs::read_to_string(modules.join(module).join("parameters").join(name));
            parameters.insert(
                (*name).to_owned(),
                value.ok().map(|value| value.trim().to_owned()),
            );
        }
    }
    KvmFacts {
        module: VENDORS.into_iter().find(is_loaded).map(str::to_owned),
        parameters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_not_known_and_never_zero() {
        let modules = tempfile::tempdir().expect("a folder");
        let facts = kvm_facts(modules.path());
        assert_eq!(facts, KvmFacts::default());
        let parameters = modules.path().join("kvm_amd/parameters");
        fs::create_dir_all(&parameters).expect("a folder");
        fs::write(parameters.join("pause_filter_count"), "3000\n").expect("room");
        fs::write(parameters.join("avic"), "N\n").expect("room");
        let facts = kvm_facts(modules.path());
        assert_eq!(facts.module.as_deref(), Some("kvm_amd"));
        assert_eq!(facts.window_and_gap(), (Some(3000), None));
        assert_eq!(facts.parameters["avic"].as_deref(), Some("N"));
        assert_eq!(facts.parameters["pause_filter_thresh"], None);
        assert!(!facts.parameters.contains_key("ple_window"));
    }
}
