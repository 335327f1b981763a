// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bpf/threads/main.bpf.c`: which threads of this process are not running, in memory that the process reads by itself.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    ptr::{self, NonNull},
};

use libbpf_rs::{Link, Object, ObjectBuilder};
use unspin_abi::{UNSPIN_THREADS_MAX, unspin_thread_run_state};

use crate::{Error, kernel::load};

static THREAD_RUN_STATES: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/thread_run_states.bpf.o"));

const BYTES: usize = UNSPIN_THREADS_MAX as usize * size_of::<unspin_thread_run_state>();

/// The loaded program and its mapped map. The program runs until this is dropped, or [`ThreadRunStates::detach`].
#[derive(Debug)]
pub struct ThreadRunStates {
    first: NonNull<unspin_thread_run_state>,
    tell: OwnedFd,
    links: Vec<Link>,
    _object: Object,
}

// SAFETY: the memory is mapped read-only and its readers expect it to change; the rest is file descriptors.
unsafe impl Send for ThreadRunStates {}
// SAFETY: as above; register_this_thread() is one system call.
unsafe impl Sync for ThreadRunStates {}

impl ThreadRunStates {
    /// Loads and attaches the program, and maps what it writes.
    ///
    /// # Errors
    /// When the kernel refuses: not root, no BTF, no mappable maps (before Linux 5.5).
    pub fn attach() -> Result<ThreadRunStates, Error> {
        let object = load(true).or_else(|_| load(false))?;
        let failed = |step: &str, source: io::Error| load::refused(step, source.into());
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let tell = object
            .progs()
            .find(|program| program.name() == "register_this_thread")
            .ok_or_else(missing)
            .and_then(|program| program.as_fd().try_clone_to_owned())
            .map_err(|source| failed("finding the program that takes threads", source))?;
        let first = map(&load::map(&object, "run_states")?)
            .map_err(|source| failed("mapping what is told of threads", source))?;
        // From here on a failure unmaps it again.
        let mut pv_page = ThreadRunStates {
            first,
            tell,
            links: Vec::new(),
            _object: object,
        };
        pv_page.links = load::attach(&pv_page._object)?;
        Ok(pv_page)
    }

    /// `UNSPIN_THREADS_MAX` structs, which stay mapped until this is dropped.
    pub fn first(&self) -> *const unspin_thread_run_state {
        self.first.as_ptr()
    }

    /// The struct of that number is about the calling thread from now on, until another thread takes it.
    ///
    /// # Errors
    /// A number of `UNSPIN_THREADS_MAX` or more, or a kernel that refuses.
    pub fn register_this_thread(&self, number: u32) -> io::Result<()> {
        let mut told = [number, 0];
        let mut options = libbpf_rs::libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_rs::libbpf_sys::bpf_test_run_opts>() as u64,
            ctx_in: told.as_mut_ptr().cast_const().cast(),
            ctx_size_in: size_of_val(&told) as u32,
            ..Default::default()
        };
        // SAFETY: a live fd, and options whose only pointer is to `told`, writable, of the size given, which outlives the call.
        let result = unsafe {
            libbpf_rs::libbpf_sys::bpf_prog_test_run_opts(self.tell.as_raw_fd(), &mut options)
        };
        match (result, told[1]) {
            (0, 1) => Ok(()),
            (0, _) => Err(io::Error::from(io::ErrorKind::InvalidInput)),
            (error, _) => Err(io::Error::from_raw_os_error(-error)),
        }
    }

    /// The program runs no more; what it wrote stays as it is.
    pub fn detach(&mut self) {
        self.links.clear();
    }
}

/// With the program that looks at run queues, or with the one that does not: the kernel need not give their address away.
fn load(run_queues: bool) -> Result<Object, Error> {
    let left_out = if run_queues {
        "on_switch_plain"
    } else {
        "on_switch"
    };
    load::with_log(|| {
        let refused = |source| load::refused("loading the program that tells of threads", source);
        let mut object = ObjectBuilder::default()
            .name("thread_run_states")
            .and_then(|builder| builder.open_memory(THREAD_RUN_STATES))
            .map_err(refused)?;
        for mut program in object.progs_mut() {
            if program.name() == left_out {
                program.set_autoload(false);
            }
        }
        object.load().map_err(refused)
    })
}

fn map(pv_page: &libbpf_rs::MapHandle) -> io::Result<NonNull<unspin_thread_run_state>> {
    // SAFETY: a new mapping of a map that was made with BPF_F_MMAPABLE and is that long (its size is asserted in abi/).
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            BYTES,
            libc::PROT_READ,
            libc::MAP_SHARED,
            pv_page.as_fd().as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

impl Drop for ThreadRunStates {
    fn drop(&mut self) {
        // SAFETY: mapped in attach() with that length; nobody may use first() after this is dropped.
        unsafe { libc::munmap(self.first.as_ptr().cast(), BYTES) };
    }
}
