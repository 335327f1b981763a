// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every program finds what it needs in the kernel that the testbed boots: in its files, without booting it. Needs that
//! kernel in the cache, where `make setup` puts it.

#[path = "kernels/compat.rs"]
#[allow(dead_code, reason = "each test uses a part")]
mod compat;

#[test]
fn every_program_fits_the_testbeds_kernel() {
    let kernel = compat::cache().join("kernel/current");
    for vendor in ["kvm_amd", "kvm_intel"] {
        let fits = compat::check(&kernel, vendor);
        compat::print("current", vendor, &fits);
        let missing: Vec<_> = fits.iter().filter(|fit| !fit.missing.is_empty()).collect();
        assert!(missing.is_empty(), "{vendor}: {missing:#?}");
        // Each object is there, and relocations were looked at: an empty list would fit any kernel.
        for object in [
            "observe",
            "steer",
            "steer_dry",
            "thread_run_states",
            "watch",
        ] {
            let of = fits.iter().filter(|fit| fit.object == object);
            let relocations: usize = of.map(|fit| fit.relocations).sum();
            assert!(relocations > 0, "{vendor}: {object}");
        }
    }
}
