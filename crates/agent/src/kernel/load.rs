// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an object to programs that run, and their maps; and the thread that does it, which goes first meanwhile.

use std::{io, panic, sync::Mutex, thread};

use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, MapHandle, Object, PrintLevel, RingBuffer};

use crate::{
    Error,
    error::KernelLog,
    kernel::{bytes, requirements},
};

/// Programs that nothing in the kernel runs by itself: they are run when user space asks for it.
fn is_run_by_user_space(section: &str) -> bool {
    section == "syscall" || section.starts_with("iter/")
}

/// What libbpf printed since the last look; its callback is a plain function and has nowhere else to put it.
static PRINTED: Mutex<String> = Mutex::new(String::new());
/// One load at a time, so that nobody takes another's lines.
static LOADING: Mutex<()> = Mutex::new(());

/// Does `work` with libbpf's lines kept for [`refused`], before other threads' work.
pub(crate) fn with_log<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let _alone = LOADING
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let _niceness = NicenessGuard::begin();
    PRINTED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .clear();
    let before = libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
    let done = work();
    libbpf_rs::set_print(before);
    done
}

/// Attaches every program that was loaded and has a place of its own: a scheduler's come with their map. All of them run
/// until the links are dropped.
pub(crate) fn attach(object: &Object) -> Result<Vec<Link>, Error> {
    object
        .progs_mut()
        .filter(|program| {
            let section = program.section().to_string_lossy();
            program.autoload()
                && !is_run_by_user_space(&section)
                && !section.starts_with("struct_ops")
        })
        .map(|program| {
            let section = program.section().to_string_lossy();
            // By name: libbpf's own way would read tracefs, which need not be mounted.
            let link = match section.split_once('/') {
                Some(("kprobe.multi", function)) => {
                    program.attach_kprobe_multi(false, vec![function])
                }
                Some(("kretprobe.multi", function)) => {
                    program.attach_kprobe_multi(true, vec![function])
                }
                _ => program.attach(),
            };
            link.map_err(|source| refused(&format!("attaching {section}"), source))
        })
        .collect()
}

fn keep(_level: PrintLevel, line: String) {
    PRINTED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .push_str(&line);
}

/// Takes so many records from a ring, or as many as there are.
pub(crate) fn consume(ring: &RingBuffer, most: usize) -> Result<(), libbpf_rs::Error> {
    match ring.consume_raw_n(most) {
        error @ ..0 => Err(libbpf_rs::Error::from_raw_os_error(-error)),
        _ => Ok(()),
    }
}

/// Writes one value into a map.
pub(crate) fn update(map: &MapHandle, key: &[u8], value: &[u8]) -> Result<(), Error> {
    map.update(key, value, MapFlags::ANY).map_err(|source| {
        refused(
            &format!("filling the BPF map {}", map.name().to_string_lossy()),
            source,
        )
    })
}

/// The error of a step, with what libbpf printed.
pub(crate) fn refused(step: &str, source: libbpf_rs::Error) -> Error {
    let log = KernelLog::new(printed());
    let step = step.to_owned();
    Error::Bpf { step, source, log }
}

/// The error of loading an object: which program the kernel refuses, or that memory is short.
pub(crate) fn not_loaded(step: &str, source: libbpf_rs::Error) -> Error {
    let log = KernelLog::new(printed());
    let release = requirements::release();
    let step = match log.program() {
        _ if source.kind() == ErrorKind::OutOfMemory => format!(
            "{step}: memory is short, on the host or in this process's memory cgroup (memory.max), which maps and programs count for"
        ),
        Some(program) => format!(
            "{step}: Linux {release} refuses the program `{program}`, where and why stands at the end of its log"
        ),
        None => format!("{step} into Linux {release}"),
    };
    Error::Bpf { step, source, log }
}

/// Takes what libbpf has printed.
fn printed() -> String {
    std::mem::take(
        &mut *PRINTED
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()),
    )
}

/// A map of the loaded object by the end of its name (libbpf puts the object's name before `.bss`).
pub(crate) fn map(object: &Object, name: &'static str) -> Result<MapHandle, Error> {
    let found = object
        .maps()
        .find(|map| map.name().to_string_lossy().ends_with(name));
    let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, name).into();
    found
        .ok_or_else(missing)
        .and_then(|map| MapHandle::try_from(&map))
        .map_err(|source| refused(&format!("finding the BPF map {name}"), source))
}

/// Puts a slot's number into the queue that the programs take theirs from.
pub(crate) fn return_slot(free_slots: &MapHandle, slot: u32) -> Result<(), Error> {
    free_slots
        .update(&[], &slot.to_ne_bytes(), MapFlags::ANY)
        .map_err(|source| refused("filling the queue of free slots", source))
}

/// The value of an array map at `index`.
pub(crate) fn value<T: bytes::Plain>(
    map: &MapHandle,
    name: &'static str,
    index: u32,
) -> Result<T, Error> {
    let found = map
        .lookup(&index.to_ne_bytes(), MapFlags::ANY)
        .map_err(|source| refused(&format!("reading the BPF map {name}"), source))?;
    bytes::read(name, &found.unwrap_or_default())
}

/// Overwrites the value of an array map at `index`.
pub(crate) fn set_value<T: bytes::Plain>(
    map: &MapHandle,
    index: u32,
    value: &T,
) -> Result<(), Error> {
    map.update(&index.to_ne_bytes(), bytes::bytes_of(value), MapFlags::ANY)
        .map_err(|source| refused("writing a BPF map", source))
}

const HIGHEST: libc::c_int = -20;

/// The calling thread goes first among ordinary ones until this is dropped, on the same thread and under the same scheduler.
/// Where it may not, nothing changes.
#[derive(Debug)]
pub(crate) struct NicenessGuard {
    before: Option<libc::c_int>,
}

impl NicenessGuard {
    pub(crate) fn begin() -> NicenessGuard {
        let before = nice().filter(|_| set_nice(HIGHEST));
        NicenessGuard { before }
    }
}

impl Drop for NicenessGuard {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            set_nice(before);
        }
    }
}

/// Does `work` on a thread that goes first and ends with it: for what changes the scheduler of the host. A nice value that is set
/// under a BPF scheduler does not change the task's weight of the fair class (set_load_weight(), kernel/sched/core.c, Linux 7.2): a
/// thread that was set back there, and all that it starts, would weigh 87 times as much as others when the fair class has them
/// again.
pub(crate) fn on_a_first_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            set_nice(HIGHEST);
            work()
        });
        thread.join()
    });
    done.unwrap_or_else(|panicked| panic::resume_unwind(panicked))
}

/// Of the calling thread: 0 is that (setpriority(2), "C library/kernel differences").
fn nice() -> Option<libc::c_int> {
    // SAFETY: errno is this thread's, and both functions take and return numbers only.
    unsafe {
        *libc::__errno_location() = 0;
        let nice = libc::getpriority(libc::PRIO_PROCESS, 0);
        // -1 is a nice value, too.
        (nice != -1 || io::Error::last_os_error().raw_os_error() == Some(0)).then_some(nice)
    }
}

fn set_nice(nice: libc::c_int) -> bool {
    // SAFETY: takes and returns numbers only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_is_as_nice_as_before_afterwards() {
        let before = nice();
        let niceness = NicenessGuard::begin();
        // Whoever may not raise it stays as he is.
        assert!(niceness.before.is_none() || nice() == Some(HIGHEST));
        drop(niceness);
        assert_eq!(nice(), before);
        let on_other = on_a_first_thread(nice);
        assert!(on_other == Some(HIGHEST) || on_other == before);
        assert_eq!(nice(), before);
    }
}
