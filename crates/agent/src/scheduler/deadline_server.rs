// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel keeps of each CPU for tasks of sched_ext beside tasks of classes that go first: a deadline server of its own
//! (`ext_server`, since Linux 7.0; kernel/sched/ext/ext.c and debug.c, Linux 7.2), 50 ms of each second if nothing else is set.

use std::{fs, path::Path};

use crate::kernel::{btf::KernelBtf, processes::numbered_in};

const FOLDER: &str = "/sys/kernel/debug/sched/ext_server";

/// That server of this host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeadlineServer {
    /// This kernel has none: beside tasks of other classes that never sleep, tasks of sched_ext do not run at all.
    Missing,
    /// It is there; the least that it keeps of a CPU, percent. `None`: debugfs is not to be read; 5 as the kernel has it.
    Keeps(Option<f64>),
}

/// Of this host, now.
pub fn deadline_server() -> DeadlineServer {
    let has =
        KernelBtf::vmlinux().is_none_or(|btf| btf.field_offset("rq", &["ext_server"]).is_some());
    match has {
        false => DeadlineServer::Missing,
        true => DeadlineServer::Keeps(least_in(Path::new(FOLDER))),
    }
}

/// Of the CPUs there; `None`: of none of them it is known.
fn least_in(folder: &Path) -> Option<f64> {
    let cpus = numbered_in(folder, "cpu").into_iter();
    let kept = cpus.filter_map(|cpu| {
        let number = |name: &str| -> Option<f64> {
            let text = fs::read_to_string(folder.join(format!("cpu{cpu}")).join(name));
            text.ok()?.trim().parse().ok()
        };
        let (runtime, period) = (number("runtime")?, number("period")?);
        (period > 0.0).then_some(100.0 * runtime / period)
    });
    kept.min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_all_cpus_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(least_in(folder.path()), None);
        for (cpu, runtime) in [("cpu0", "50000000"), ("cpu1", "0"), ("cpu2", "x")] {
            let cpu = folder.path().join(cpu);
            fs::create_dir(&cpu).expect("a folder");
            fs::write(cpu.join("runtime"), format!("{runtime}\n")).expect("a file");
            fs::write(cpu.join("period"), "1000000000\n").expect("a file");
        }
        assert_eq!(least_in(folder.path()), Some(0.0));
        fs::remove_dir_all(folder.path().join("cpu1")).expect("ours");
        assert_eq!(least_in(folder.path()), Some(5.0));
    }
}
