// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whoever gives threads other slices may be killed at any time: a child of its own, which the terminal's signals do not reach, gives
//! them back then. It is told of each change before that is made, and acts when its parent has gone or says that it is over.

use std::{
    fs::File,
    io::{self, Write},
    mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

use crate::kernel::thread_slice::Scheduled;

/// Threads have numbers below that: `PID_MAX_LIMIT` of include/linux/threads.h.
const THREADS: usize = 1 << 22;

/// A change: thread, the slice it is given, the one that it had at first, ns; 0: the kernel's own.
type Record = [u32; 3];

/// What is known of one thread. All zero: nothing.
#[repr(C)]
#[derive(Clone, Copy)]
struct Known {
    /// The slice that it was given, or is about to be given, and the one before that, ns.
    given_ns: u32,
    before_ns: u32,
    /// The one that it had at first.
    first_ns: u32,
    is_known: u32,
}

/// The child, as its parent sees it.
pub(super) struct Guard {
    pipe: Option<File>,
    child: libc::pid_t,
}

impl Guard {
    /// Begins to watch. To be called before there are files that must not outlive the caller.
    ///
    /// # Errors
    /// When no process can be made.
    pub(super) fn start() -> io::Result<Guard> {
        let mut ends = [0; 2];
        // SAFETY: it writes two numbers into `ends`.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both were made just now, and have no other owner.
        let [read, write] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        let table = Table::new()?;
        // SAFETY: the child calls nothing but functions that are safe after a fork of one thread of several (signal-safety(7)):
        // system calls, on memory that is there already; and it ends by _exit().
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => watch(read.as_raw_fd(), table),
            child => Ok(Guard {
                pipe: Some(File::from(write)),
                child,
            }),
        }
    }

    /// That thread is about to be given a slice, and had that one at first, ns.
    ///
    /// # Errors
    /// When the child has gone: nothing must be changed any more.
    pub(super) fn tell(&mut self, thread: u32, given_ns: u32, first_ns: u32) -> io::Result<()> {
        let record: Record = [thread, given_ns, first_ns];
        let bytes = record.map(u32::to_ne_bytes);
        let gone = || io::Error::other("the process that gives slices back has ended");
        let pipe = self.pipe.as_mut().ok_or_else(gone)?;
        // Below PIPE_BUF: all or nothing.
        pipe.write_all(bytes.as_flattened()).map_err(|_| gone())
    }

    /// Every slice is given back; whether the child has done so.
    pub(super) fn end(&mut self) -> bool {
        if self.pipe.take().is_none() {
            return true;
        }
        let mut status = 0;
        // SAFETY: it writes one number; the child is ours, and nobody else waits for it.
        let waited = unsafe { libc::waitpid(self.child, &raw mut status, 0) };
        waited == self.child && libc::WIFEXITED(status)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}

/// By thread. Untouched parts of it cost no memory.
struct Table(*mut Known);

impl Table {
    fn new() -> io::Result<Table> {
        let bytes = THREADS * mem::size_of::<Known>();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        match at {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            at => Ok(Table(at.cast())),
        }
    }

    fn of(&mut self, thread: usize) -> &mut Known {
        // SAFETY: below THREADS, so inside the mapping, which is zeroes where nothing was written: a Known.
        unsafe { &mut *self.0.add(thread % THREADS) }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: what mmap() gave, with its length; nobody has a reference into it any more.
        unsafe { libc::munmap(self.0.cast(), THREADS * mem::size_of::<Known>()) };
    }
}

/// The child: reads until nobody can write any more, then gives back what was changed.
fn watch(pipe: RawFd, mut table: Table) -> ! {
    // Below it: standard input, output, error; above it: files of the parent, which must not outlive that because of this child.
    // SAFETY: system calls without pointers into memory of ours but `name`, which ends in 0.
    unsafe {
        libc::setsid();
        let name = c"unspin-guard";
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        for file in 0..3 {
            if file != pipe {
                libc::close(file);
            }
        }
        let pipe = pipe as u32;
        if pipe > 3 {
            libc::syscall(libc::SYS_close_range, 3u32, pipe - 1, 0u32);
        }
        libc::syscall(libc::SYS_close_range, pipe + 1, u32::MAX, 0u32);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    let (mut first, mut last) = (THREADS, 0);
    while let Some([thread, given_ns, first_ns]) = read_record(pipe) {
        let thread = thread as usize % THREADS;
        (first, last) = (first.min(thread), last.max(thread));
        let known = table.of(thread);
        *known = Known {
            given_ns,
            before_ns: known.given_ns,
            first_ns,
            is_known: 1,
        };
    }
    for thread in first..=last {
        let known = *table.of(thread);
        if known.is_known != 0 {
            give_back(thread as u32, known);
        }
    }
    // SAFETY: ends this process, and runs nothing of its parent's.
    unsafe { libc::_exit(0) }
}

/// A thread that has another slice by now than we gave it, or is another one with the same number, is left alone.
fn give_back(thread: u32, known: Known) {
    if let Ok(now) = Scheduled::of(thread) {
        let slice_ns = now.slice_ns();
        let ours = [known.given_ns, known.before_ns].map(u64::from);
        if now.is_fair() && slice_ns != 0 && ours.contains(&slice_ns) {
            // It may end meanwhile.
            let _ = now.set_slice(thread, known.first_ns.into());
        }
    }
}

fn read_record(pipe: RawFd) -> Option<Record> {
    let mut record: Record = [0; 3];
    let mut have = 0;
    while have < mem::size_of::<Record>() {
        let left = mem::size_of::<Record>() - have;
        // SAFETY: `left` bytes from there on are inside `record`.
        let got = unsafe { libc::read(pipe, (&raw mut record).byte_add(have).cast(), left) };
        match got {
            1.. => have += got as usize,
            // EINTR by a signal that is not ignored.
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return None,
        }
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::kernel::thread_slice::kernels_slice;

    /// A thread that has that slice, tells its number, and says in the end which it has.
    fn with_slice(slice_ns: u64, meanwhile: impl FnOnce(u32)) -> u64 {
        let (send, number) = mpsc::channel();
        let (go_on, over) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let own = Scheduled::of(0).expect("the caller's");
            own.set_slice(0, slice_ns).expect("its own");
            // SAFETY: it only tells a number.
            send.send(unsafe { libc::gettid() } as u32).expect("heard");
            over.recv().expect("told");
            Scheduled::of(0).expect("the caller's").slice_ns()
        });
        meanwhile(number.recv().expect("told"));
        go_on.send(()).expect("heard");
        thread.join().expect("it ends")
    }

    #[test]
    fn what_was_changed_is_given_back() {
        let Some(kernels_ns) = kernels_slice().expect("a thread") else {
            return; // Before Linux 6.12.
        };
        for (first_ns, expected_ns) in [(0, kernels_ns), (700_000, 700_000)] {
            let left = with_slice(300_000, |thread| {
                let mut guard = Guard::start().expect("a child");
                guard.tell(thread, 100_000, first_ns).expect("told");
                guard.tell(thread, 300_000, first_ns).expect("told");
                // Told, and killed before it was given: what it has is from the time before.
                guard.tell(thread, 10_000_000, first_ns).expect("told");
                assert!(guard.end());
            });
            assert_eq!(left, expected_ns);
        }
        let somebody_elses = with_slice(500_000, |thread| {
            let mut guard = Guard::start().expect("a child");
            guard.tell(thread, 300_000, 0).expect("told");
        });
        assert_eq!(somebody_elses, 500_000);
    }

    #[test]
    fn a_guard_that_is_gone_is_noticed() {
        let mut guard = Guard::start().expect("a child");
        // SAFETY: no pointers; the child is ours, and not waited for yet.
        unsafe { libc::kill(guard.child, libc::SIGKILL) };
        let mut told = Ok(());
        for _ in 0..1_000 {
            told = guard.tell(1 << 21, 1, 0);
            if told.is_err() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(told.is_err());
        assert!(!guard.end());
    }
}
