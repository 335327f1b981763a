// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that is nearly always inside a migrate_disable(), where it cannot be moved to another CPU.

use std::{ffi::CStr, time::Duration};
use unspin_testbed::check;

use libbpf_rs::libbpf_sys::{
    BPF_PROG_TYPE_SOCKET_FILTER, bpf_insn, bpf_prog_load, bpf_prog_test_run_opts, bpf_test_run_opts,
};

use crate::steerer::host::{Busy, attach, shares, still_there};

/// What this binary does when it is started as `stuck`: the kernel runs a program of two instructions for it over and
/// over, each time inside a migrate_disable() (bpf_test_run(), net/bpf/test_run.c, Linux 7.2).
pub fn run_programs() -> ! {
    // r0 = 0; exit
    let program = [
        bpf_insn {
            code: 0xb7,
            ..Default::default()
        },
        bpf_insn {
            code: 0x95,
            ..Default::default()
        },
    ];
    const LICENSE: &CStr = c"GPL";
    // SAFETY: the instructions outlive the call, which copies as many as it is told, and the name and options may be absent.
    let fd = unsafe {
        bpf_prog_load(
            BPF_PROG_TYPE_SOCKET_FILTER,
            std::ptr::null(),
            LICENSE.as_ptr(),
            program.as_ptr(),
            program.len() as u64,
            std::ptr::null_mut(),
        )
    };
    assert!(fd >= 0, "bpf_prog_load: {fd}");
    let packet = [0u8; 64];
    loop {
        let mut options = bpf_test_run_opts {
            sz: size_of::<bpf_test_run_opts>() as u64,
            data_in: packet.as_ptr().cast(),
            data_size_in: packet.len() as u32,
            repeat: 1_000_000,
            ..Default::default()
        };
        // SAFETY: the packet outlives the call, which reads as much as it is told, and nothing is written to it.
        let result = unsafe { bpf_prog_test_run_opts(fd, &mut options) };
        assert_eq!(result, 0);
    }
}

check!(STEERER_LONG: who_is_stuck_on_a_cpu_waits_like_others);
/// Eight tasks on two CPUs: a quarter of a CPU each. Put before those that wait, it would alternate with them.
fn who_is_stuck_on_a_cpu_waits_like_others() {
    let steerer = attach();
    let stuck = Busy::stuck();
    let others: Vec<Busy> = (0..7).map(|_| Busy::start(0, None)).collect();
    let all: Vec<&Busy> = others.iter().chain([&stuck]).collect();
    let measured = shares(&all, Duration::from_secs(2));
    println!("  of 2 s on two CPUs, the last one stuck: {measured:?} s");
    assert!(
        measured.iter().all(|time| (0.45..0.55).contains(time)),
        "{measured:?}"
    );
    still_there(&steerer);
}
