// SPDX-License-Identifier: MIT OR Apache-2.0
//! A user policy in this process: compiled as a shared library without dependencies, which even a static binary can
//! load. For the lab only: an endless loop or a wild pointer, which BPF's verifier refuses, takes this process down.

use std::{
    collections::HashMap,
    ffi::{CStr, CString, c_char, c_int, c_void},
    fs,
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

/// The number of user policies that a process may load; each version of a changing file counts.
const LIBRARIES_MAX: usize = 255;

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
/// Which they are.
static FILES: Mutex<Option<Files>> = Mutex::new(None);

#[derive(Default)]
struct Files {
    /// File and text of each loaded library.
    loaded: Vec<(PathBuf, Vec<u8>)>,
    /// The library compiled from a file, until the file is checked again.
    current: HashMap<PathBuf, usize>,
}

/// From now on a file that has changed is another policy: for a process that runs one task after another. A running task
/// sees a change, too.
pub fn look_again() {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    files.get_or_insert_default().current.clear();
}

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
    /// Compiles the policy and loads it, once for each file: later changes of the file are not seen before [`look_again`].
    ///
    /// # Errors
    /// When there is no compiler, it does not compile or calls a missing function, or too many are loaded.
    pub fn load(&self) -> Result<UserPolicyNumber, UserPolicySourceError> {
        let path = absolute(self.path())?;
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        let files = files.get_or_insert_default();
        let place = match files.current.get(&path) {
            Some(place) => *place,
            None => self.load_text(&path, &mut files.loaded)?,
        };
        files.current.insert(path, place);
        // Below LIBRARIES_MAX, so it fits.
        let number = NonZero::new(place as u8 + 1);
        number
            .map(UserPolicyNumber)
            .ok_or(UserPolicySourceError::TooMany(LIBRARIES_MAX))
    }

    /// The library of the file's text as it is now.
    fn load_text(
        &self,
        path: &Path,
        loaded: &mut Vec<(PathBuf, Vec<u8>)>,
    ) -> Result<usize, UserPolicySourceError> {
        let text = fs::read(path).map_err(|source| UserPolicySourceError::file(path, source))?;
        let same = |(of, what): &(PathBuf, Vec<u8>)| of == path && *what == text;
        if let Some(place) = loaded.iter().position(same) {
            return Ok(place);
        }
        if loaded.len() == LIBRARIES_MAX {
            return Err(UserPolicySourceError::TooMany(LIBRARIES_MAX));
        }
        let functions = self.compile_and_open()?;
        // No other thread sets it: the lock is held, and the index is new.
        let _ = LOADED[loaded.len()].set(functions);
        loaded.push((path.to_owned(), text));
        Ok(loaded.len() - 1)
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
