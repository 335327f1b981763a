// SPDX-License-Identifier: MIT OR Apache-2.0
//! A user policy in this process: compiled as a shared library without dependencies, which even a static binary can
//! load. For the lab only: an endless loop or a wild pointer, which BPF's verifier refuses, takes this process down.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    num::NonZero,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
};

use crate::{
    raw,
    user_policy::{
        UserPolicySource, UserPolicySourceError,
        work::{CC, Work, absolute},
    },
};

/// The number of user policies that a process may load.
const LIBRARIES_MAX: usize = 16;

pub(crate) type Decide = unsafe extern "C" fn(
    u32,
    u32,
    *const raw::unspin_facts,
    *mut raw::unspin_policy_memory,
) -> raw::unspin_decision;
pub(crate) type OnSliceStart =
    unsafe extern "C" fn(u32, *const raw::unspin_facts, *mut raw::unspin_policy_memory);

/// The functions of `native/user_library.c`: `policies_decide` and `policies_on_slice_start` with the user policy among
/// the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserFunctions {
    pub decide: Decide,
    pub on_slice_start: OnSliceStart,
}

/// The loaded libraries; they are never unloaded.
static LOADED: [OnceLock<UserFunctions>; LIBRARIES_MAX] =
    [const { OnceLock::new() }; LIBRARIES_MAX];
/// The file of each.
static PATHS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A loaded user policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserPolicyNumber(NonZero<u8>);

impl UserPolicyNumber {
    #[inline]
    pub(crate) fn functions(self) -> Option<&'static UserFunctions> {
        LOADED[usize::from(self.0.get()) - 1].get()
    }
}

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

/// Resolves all symbols at once (bits/dlfcn.h).
const RTLD_NOW: c_int = 2;

impl UserPolicySource {
    /// Compiles the policy and loads it, once for each file: later changes of the file are not seen.
    ///
    /// # Errors
    /// When there is no compiler, it does not compile or calls a missing function, or too many are loaded.
    pub fn load(&self) -> Result<UserPolicyNumber, UserPolicySourceError> {
        let path = absolute(self.path())?;
        let mut paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match paths.iter().position(|other| *other == path) {
            Some(place) => place,
            None if paths.len() == LIBRARIES_MAX => {
                return Err(UserPolicySourceError::TooMany(LIBRARIES_MAX));
            }
            None => {
                let functions = self.compile_and_open()?;
                // No other thread sets it: the lock is held, and the index is new.
                let _ = LOADED[paths.len()].set(functions);
                paths.push(path);
                paths.len() - 1
            }
        };
        // Below LIBRARIES_MAX, so it fits.
        let number = NonZero::new(place as u8 + 1);
        number
            .map(UserPolicyNumber)
            .ok_or(UserPolicySourceError::TooMany(LIBRARIES_MAX))
    }

    fn compile_and_open(&self) -> Result<UserFunctions, UserPolicySourceError> {
        let work = Work::new(self.path())?;
        let library = work.folder().join("policy.so");
        let arguments = [
            "-std=c11",
            "-O2",
            "-g",
            "-shared",
            "-fPIC",
            "-ffreestanding",
            "-fno-stack-protector",
            "-fno-tree-loop-distribute-patterns",
            "-fvisibility=hidden",
            "-nostdlib",
            "-Wl,--no-undefined",
        ];
        let main = work.folder().join("unspin/policy/user_library.c");
        let arguments = arguments.map(str::to_owned).into();
        self.compile(
            &work,
            &CC,
            "running a policy in the lab",
            arguments,
            &main,
            &library,
        )?;
        // The file may be deleted when this returns: it is mapped.
        open(&library).map_err(|said| UserPolicySourceError::Library {
            path: self.path().to_owned(),
            said,
        })
    }
}

fn open(library: &Path) -> Result<UserFunctions, String> {
    let said = || {
        // SAFETY: of this thread's last failure; null or a string that lives until the next call, and is copied here.
        let text = unsafe { dlerror().as_ref().map(|first| CStr::from_ptr(first)) };
        text.map_or("no reason given".to_owned(), |text| {
            text.to_string_lossy().into_owned()
        })
    };
    let path = CString::new(library.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: a string. The library was compiled just now, has no constructors of ours and needs no other library.
    let handle = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
    if handle.is_null() {
        return Err(said());
    }
    let symbol = |name: &CStr| {
        // SAFETY: a handle that is open, and stays open, and a string.
        let found = unsafe { dlsym(handle, name.as_ptr()) };
        (!found.is_null()).then_some(found).ok_or_else(said)
    };
    let (decide, on_slice_start) = (
        symbol(c"user_library_decide")?,
        symbol(c"user_library_on_slice_start")?,
    );
    // SAFETY: functions of those types (native/user_library.c, the same headers as `raw`), in a library that stays.
    Ok(unsafe {
        UserFunctions {
            decide: std::mem::transmute::<*mut c_void, Decide>(decide),
            on_slice_start: std::mem::transmute::<*mut c_void, OnSliceStart>(on_slice_start),
        }
    })
}
