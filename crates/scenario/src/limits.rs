// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scenario may ask for at most. The parser, the schema and the messages all take their bounds from here.

use unspin_abi::{UNSPIN_GUEST_LOCKS_MAX, UNSPIN_GUEST_VCPUS_MAX};

/// VMs of one group, and of all groups together.
pub const VMS_MAX: u32 = 1_000;
/// vCPUs of one VM: the guest's statistics area has room for so many.
pub const VCPUS_MAX: u32 = UNSPIN_GUEST_VCPUS_MAX;
/// Shared locks of one VM.
pub const LOCKS_MAX: u32 = UNSPIN_GUEST_LOCKS_MAX;
/// pCPUs of a host.
pub const CPUS_MAX: u32 = 4_096;
/// Seeds: TOML's integers end at 2^63 - 1.
pub const SEED_MAX: u64 = i64::MAX as u64;
/// Longest time after which a VM's load changes, ms: an hour.
pub const LOAD_CHANGES_EVERY_MS_MAX: u32 = 3_600_000;
/// Longest run: one day.
pub const DURATION_MAX_NS: u64 = 86_400_000_000_000;
/// Work in loops. The largest quantile of an exponential is 6.6 times its mean and must fit in 32 bits.
pub const WORK_MAX_LOOPS: u64 = 500_000_000;
/// Work in time: 100 ms, for the same reason at up to 6,000 loops per microsecond.
pub const WORK_MAX_NS: u64 = 100_000_000;
/// `pause_filter_count` and `pause_filter_thresh` of `kvm_amd` are 16 bits wide.
pub const PLE_MAX: u32 = 65_535;
/// Timer interrupts per second and vCPU.
pub const TICK_HZ_MAX: u32 = 10_000;
/// Tasks of a vCPU of the micro guest, and of a VM (abi/guest/memory.h).
pub const TASKS_PER_VCPU_MAX: u32 = unspin_abi::UNSPIN_GUEST_TASKS_PER_VCPU_MAX;
/// See above.
pub const TASKS_MAX: u32 = unspin_abi::UNSPIN_GUEST_TASKS_MAX;
/// Iterations of a waiting loop per PAUSE.
pub const PAUSE_EVERY_MAX: u32 = 65_536;
/// Characters of a scenario's name.
pub const NAME_MAX: usize = 64;
/// Characters of a name that the lab knows: schedulers, policies, costs.
pub const WORD_MAX: usize = 128;
/// Longest halt polling: a second. KVM's default is 200 us.
pub const HALT_POLL_MAX_NS: u32 = 1_000_000_000;
/// Oldest facts, longest time between two looks and for a page: a second.
pub const FACTS_AGE_MAX_NS: u32 = 1_000_000_000;
/// All of them.
pub const PPM_MAX: u32 = 1_000_000;
/// Guest tasks of a vCPU in the lab.
pub const GUEST_TASKS_MAX: u32 = 64;
/// Threads of the lab that use CPU time.
pub const CPU_HOGS_MAX: u32 = 4_096;
/// Shortest mean time from one event of the host to the next in the lab: a hundred thousand a second and pCPU.
pub const NOISE_EVERY_MIN_NS: u64 = 10_000;
/// Longest: an hour.
pub const NOISE_EVERY_MAX_NS: u64 = 3_600_000_000_000;
/// `cpu.weight` of a cgroup: `CGROUP_WEIGHT_MAX` (include/linux/cgroup.h, Linux 7.2).
pub const WEIGHT_MAX: u32 = 10_000;
/// A cost in the lab: a second in nanoseconds, and as much in any other unit.
pub const COST_MAX: u32 = 1_000_000_000;
/// Bytes of a scenario file.
pub const FILE_MAX_BYTES: u64 = 1 << 20;
