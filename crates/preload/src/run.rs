// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the program, in this process's place or beside it.

use std::{
    env, io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicI32, Ordering},
};

use crate::{Error, Program, Report, library, report::ReportFile};

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit status.
    Status(u8),
    /// By this signal.
    Signal(i32),
}

/// Signals that others send to this process are the program's. Of those that a terminal sends both get one.
const FORWARDED: [i32; 7] = [
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
];

/// The program while it runs; 0: none.
static CHILD: AtomicI32 = AtomicI32::new(0);

fn command(program: &Program) -> Result<Command, Error> {
    let library = library::place()?;
    let mut command = Command::new(&program.path);
    command.arg0(&program.name).args(&program.arguments).env(
        "LD_PRELOAD",
        library::preload(&library, env::var_os("LD_PRELOAD").as_deref()),
    );
    Ok(command)
}

/// Becomes the program; returns only if that fails.
pub fn replace(program: &Program) -> Error {
    match command(program) {
        Ok(mut command) => Error::NotStarted(program.path.clone(), command.exec()),
        Err(error) => error,
    }
}

/// Runs the program, passes signals on to it, and returns how it ended and what was counted in it.
///
/// # Errors
/// When it cannot be started.
pub fn run(program: &Program) -> Result<(Ended, Report), Error> {
    let file = ReportFile::new()?;
    let mut command = command(program)?;
    command.env("UNSPIN_PRELOAD_REPORT", file.path());
    let not_started = |error: io::Error| Error::NotStarted(PathBuf::from(&program.name), error);
    // Before it starts: it gets handlers, which exec makes the default, not signals that are ignored.
    forward_signals().map_err(not_started)?;
    let mut child = command.spawn().map_err(not_started)?;
    CHILD.store(child.id() as i32, Ordering::SeqCst);
    let status = child.wait().map_err(not_started)?;
    CHILD.store(0, Ordering::SeqCst);
    let ended = match status.signal() {
        Some(signal) => Ended::Signal(signal),
        None => Ended::Status(status.code().unwrap_or(1) as u8),
    };
    Ok((ended, file.read()?))
}

/// Passes a signal on. Only what may be done in a signal handler: one system call, one atomic.
extern "C" fn forward(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    let child = CHILD.load(Ordering::SeqCst);
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid pointer.
    let code = unsafe { (*info).si_code };
    // Above 0: the kernel's own, as for a key of the terminal, which the program gets by itself.
    if child != 0 && code <= 0 {
        // SAFETY: kill() has no preconditions.
        unsafe { libc::kill(child, signal) };
    }
}

fn forward_signals() -> io::Result<()> {
    for signal in FORWARDED {
        // SAFETY: all zero is an empty action; the handler is of the type that SA_SIGINFO promises.
        let done = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = forward as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut())
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

impl Ended {
    /// Ends this process as the program has ended: by the same signal, without a core file of its own.
    pub fn imitate(self) -> u8 {
        match self {
            Ended::Status(status) => status,
            Ended::Signal(signal) => {
                let none = libc::rlimit {
                    rlim_cur: 0,
                    rlim_max: 0,
                };
                // SAFETY: a valid struct; the default action of a signal needs no care, and where it does not end the process
                // the status below says the same, as shells do.
                unsafe {
                    libc::setrlimit(libc::RLIMIT_CORE, &none);
                    libc::signal(signal, libc::SIG_DFL);
                    libc::raise(signal);
                }
                128u8.wrapping_add(signal as u8)
            }
        }
    }
}
