// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the command as a child of PID 1, carries its output to the channel and reaps whatever it leaves behind.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};

use crate::channel::{Sink, Stream};
use crate::job::Job;

/// How long PID 1 sleeps when nothing happens, by the testbed's clock; then it tells the host that it is alive.
const HEARTBEAT_MS: libc::c_int = 250;
const READ_BYTES: usize = 64 << 10;
/// What a shell answers when a command is not there, or is there and cannot be executed.
const NOT_FOUND: u32 = 127;
const NOT_EXECUTABLE: u32 = 126;

/// Runs the job's command to its end and returns its exit status, 128 + n for signal n.
pub fn run(job: &Job, channel: &mut dyn Sink) -> Result<u32, String> {
    let ended_children = child_signals().map_err(|error| format!("watching children: {error}"))?;
    let mut child = match spawn(job) {
        Ok(child) => child,
        Err(error) => {
            let message = format!("{}: {error}\n", job.command[0]);
            super::send(channel, Stream::Stderr, message.as_bytes());
            return Ok(if error.kind() == ErrorKind::NotFound {
                NOT_FOUND
            } else {
                NOT_EXECUTABLE
            });
        }
    };
    let pipes = child
        .stdout
        .take()
        .map(|pipe| pipe_file(pipe.into()))
        .zip(child.stderr.take().map(|pipe| pipe_file(pipe.into())));
    let (stdout, stderr) = pipes.ok_or("the command has no pipes")?;
    let mut outputs = [
        (Some(stdout?), Stream::Stdout),
        (Some(stderr?), Stream::Stderr),
    ];
    let mut status = None;
    while status.is_none() {
        wait_for_something(&outputs, &ended_children)?;
        channel.beat();
        forget_signals(&ended_children);
        status = reap(child.id());
        carry(&mut outputs, channel)?;
    }
    end_all_others();
    carry(&mut outputs, channel)?;
    Ok(status.map_or(0, exit_code))
}

fn spawn(job: &Job) -> std::io::Result<std::process::Child> {
    let mut command = Command::new(&job.command[0]);
    command
        .args(&job.command[1..])
        .env_clear()
        .envs(&job.environment)
        .current_dir(&job.working_directory);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: between fork and exec only async-signal-safe calls are made: sigemptyset, sigprocmask, setsid.
    unsafe { command.pre_exec(own_session_without_blocked_signals) };
    command.spawn()
}

fn own_session_without_blocked_signals() -> std::io::Result<()> {
    // SAFETY: the set is initialised by sigemptyset before it is used; setsid touches no memory.
    let result = unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::setsid()
    };
    if result < 0 {
        Err(std::io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// A descriptor that becomes readable when a child ends.
fn child_signals() -> std::io::Result<File> {
    // SAFETY: the set is initialised by sigemptyset before it is used; PID 1 has no other thread.
    let descriptor = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

fn pipe_file(pipe: std::os::fd::OwnedFd) -> Result<File, String> {
    // SAFETY: F_SETFL takes a plain integer and touches no memory.
    if unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } < 0 {
        return Err(format!(
            "the command's output: {}",
            std::io::Error::last_os_error()
        ));
    }
    Ok(File::from(pipe))
}

fn wait_for_something(outputs: &[(Option<File>, Stream); 2], signals: &File) -> Result<(), String> {
    // A negative descriptor is left out by poll.
    let descriptor = |file: &Option<File>| file.as_ref().map_or(-1, |file| file.as_raw_fd());
    let watched = [
        descriptor(&outputs[0].0),
        descriptor(&outputs[1].0),
        signals.as_raw_fd(),
    ];
    let mut watched = watched.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: the array is valid for its three entries.
    let result = unsafe {
        libc::poll(
            watched.as_mut_ptr(),
            watched.len() as libc::nfds_t,
            HEARTBEAT_MS,
        )
    };
    let error = std::io::Error::last_os_error();
    if result < 0 && error.kind() != ErrorKind::Interrupted {
        return Err(format!("waiting for the command: {error}"));
    }
    Ok(())
}

fn forget_signals(mut signals: &File) {
    let mut buffer = [0; size_of::<libc::signalfd_siginfo>()];
    while signals.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
}

/// Collects every child that has ended, the command's orphans too; the command's own status is returned.
fn reap(command: u32) -> Option<ExitStatus> {
    let mut found = None;
    loop {
        let mut status = 0;
        // SAFETY: status is valid for the write.
        let child = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        if child <= 0 {
            return found;
        }
        if child as u32 == command {
            found = Some(ExitStatus::from_raw(status));
        }
    }
}

/// Ends what the command left running, so that nothing writes any more when the last output is carried.
fn end_all_others() {
    // SAFETY: -1 means every process but PID 1 itself; no memory is involved.
    unsafe { libc::kill(-1, libc::SIGKILL) };
    // SAFETY: a null pointer means that the status is not wanted. Ends when there is no child left.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0 {}
}

/// Moves everything there is from the pipes to the channel; a pipe at its end is closed.
fn carry(outputs: &mut [(Option<File>, Stream); 2], channel: &mut dyn Sink) -> Result<(), String> {
    let mut buffer = vec![0; READ_BYTES];
    for (pipe, stream) in outputs {
        while let Some(file) = pipe {
            match file.read(&mut buffer) {
                Ok(0) => *pipe = None,
                // When the area is full the run is over; the area itself tells the host why.
                Ok(bytes) => channel
                    .append(*stream, &buffer[..bytes])
                    .map_err(|error| error.to_string())?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("reading the command's output: {error}")),
            }
        }
    }
    Ok(())
}

fn exit_code(status: ExitStatus) -> u32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(255) as u32
}
