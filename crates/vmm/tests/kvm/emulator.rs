// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the emulated processor below must keep apart where each of its CPUs has a thread of its own.
use std::{
    arch::x86_64::{_fxrstor64, _fxsave64},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};
use unspin_testbed::check;

use unspin_scenario::{Length, Vm};
use unspin_vmm::RunOptions;

use crate::support::{run_alone, scenario, vm};

/// Where FXSAVE puts the state: 512 bytes, aligned to 16 (AMD64 APM vol. 4, FXSAVE).
#[repr(align(16))]
struct FpuState([u8; 512]);

check!(KVM_THREADS: what_another_cpu_restores_harms_no_vm);
/// QEMU's FXRSTOR wrote the first CPU's SVM flags (testbed/qemu/svm-flags-race.patch): a VM on CPU 0 lost nested paging, or
/// CPU 0 its interrupts. A switch of tasks restores one such state; here CPU 1 does nothing else.
pub fn what_another_cpu_restores_harms_no_vm() {
    let stop = AtomicBool::new(false);
    let restored = thread::scope(|scope| {
        let restorer = scope.spawn(|| restore_until(&stop));
        let stops = Stops(&stop);
        let many_exits = Vm {
            log_records: 0,
            ..vm(2)
        };
        let mut on_cpu_0 = scenario(Length::DurationNs(3_000_000_000), vec![many_exits]);
        on_cpu_0.host.cpus = Some(1);
        run_alone(&on_cpu_0, &RunOptions::default()).expect("the VM runs");
        drop(stops);
        restorer.join().expect("it restores")
    });
    println!("CPU 1 restored {restored} states");
    assert!(restored > 10_000);
}

/// Ends the loop also when the run panics.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Restores on CPU 1 what it saved there; how often it did.
fn restore_until(stop: &AtomicBool) -> u64 {
    stay_on_cpu(1);
    let mut state = FpuState([0; 512]);
    let mut times = 0;
    // SAFETY: 512 bytes, aligned, this thread's own.
    unsafe { _fxsave64(state.0.as_mut_ptr()) };
    while !stop.load(Ordering::Relaxed) {
        // SAFETY: as above, and it holds what was saved.
        unsafe { _fxrstor64(state.0.as_ptr()) };
        times += 1;
    }
    times
}

fn stay_on_cpu(cpu: usize) {
    // SAFETY: a set of CPUs is plain bits, zero is the empty one; the pointer and its size are that set's.
    let status = unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut cpus);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &cpus)
    };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}
