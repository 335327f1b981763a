// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capabilities that the services have are enough, and those that are said to be needed are: packaging/systemd.

use std::thread;

use unspin_agent::{ObserveOptions, Observer, SteerOptions, Steerer, Watcher};
use unspin_testbed::check;

const WATCH: &str = include_str!("../../../../packaging/systemd/unspin-watch.service");
const STEER: &str = include_str!("../../../../packaging/systemd/unspin-steer.service");

/// Numbers of include/uapi/linux/capability.h, Linux 7.2.
const NUMBERS: [(&str, u32); 5] = [
    ("CAP_SYS_PTRACE", 19),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_NICE", 23),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
];
/// _LINUX_CAPABILITY_VERSION_3 of the same file.
const VERSION_3: u32 = 0x2008_0522;

/// The capabilities of a unit, as bits.
fn capabilities(unit: &str) -> u64 {
    let mut lines = unit.lines();
    let words = lines.find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let words = words.expect("the unit has few capabilities").split(' ');
    words.fold(0, |bits, word| {
        let known = NUMBERS.iter().find(|(name, _)| *name == word);
        let (_, number) = known.unwrap_or_else(|| panic!("{word}: put its number here"));
        bits | 1 << number
    })
}

/// What `work` says on a thread that has these capabilities and no others.
fn with<T: Send>(capabilities: u64, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let header = [VERSION_3, 0];
            let [low, high] = [capabilities as u32, (capabilities >> 32) as u32];
            // Effective, permitted and inheritable, the lower 32 bits first (capset(2)).
            let sets = [low, low, 0, high, high, 0];
            // SAFETY: two arrays as the call wants them: struct __user_cap_header_struct and two of __user_cap_data_struct.
            let set = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) };
            assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
            work()
        });
        thread.join().expect("the work is done")
    })
}

check!(STEERER: the_services_have_the_capabilities_that_they_need);
fn the_services_have_the_capabilities_that_they_need() {
    let few = capabilities(WATCH);
    with(few, || {
        let watcher = Watcher::attach().expect("what unspin-watch may is enough");
        watcher.read().expect("counters can be read");
        // A burst.
        Observer::attach(&ObserveOptions::default()).expect("what unspin-watch may is enough");
    });
    with(capabilities(STEER), || {
        let steerer = Steerer::attach(&SteerOptions::default());
        let steerer = steerer.expect("what unspin-steer may is enough");
        assert_eq!(steerer.ended().expect("the kernel tells"), None);
    });
    // The types in KVM's modules are told to CAP_SYS_ADMIN alone, whatever else there is (bpf_btf_get_fd_by_id()): libbpf finds none.
    let admin = 1 << 21;
    let refused = with(!admin & ((1 << 41) - 1), Watcher::attach).err();
    let says = refused.expect("refused").to_string();
    assert!(says.contains("kernel BTF type ID of 'kvm_exit'"), "{says}");
}
