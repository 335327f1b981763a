// SPDX-License-Identifier: MIT OR Apache-2.0
//! PID 1 in the testbed: makes the system usable, runs the one command, sends everything out, switches the machine off.

mod area;
mod command;
mod send;
mod system;

use std::path::Path;

use crate::boot::channel::{Stream, Writer};
use crate::job::{JOB_PATH, Job, OUT_DIRECTORY};

/// What PID 1 does. Never returns: at its end the machine is off.
///
/// To be called first thing in `main` when the process id is 1, before any thread is started.
pub fn init_main() -> ! {
    let boot_ns = system::uptime_ns();
    let outcome = std::panic::catch_unwind(|| {
        system::mount_all().and_then(|notes| Ok((notes, area::map()?)))
    });
    match outcome {
        Ok(Ok((notes, mut channel))) => {
            send(&mut channel, Stream::InitStarted, &boot_ns.to_le_bytes());
            for note in notes {
                send(&mut channel, Stream::Note, note.as_bytes());
            }
            if let Err(message) = work(&mut channel) {
                send(&mut channel, Stream::InitFailed, message.as_bytes());
            }
        }
        // Without the channel the console is all there is; the host shows it when no exit status comes.
        Ok(Err(message)) => system::say_on_console(&format!("testbed init: {message}")),
        Err(_) => system::say_on_console("testbed init: a bug, see the panic above"),
    }
    system::power_off()
}

/// A frame that finds no room is not lost silently: the area itself tells the host.
fn send(channel: &mut Writer, stream: Stream, bytes: &[u8]) {
    let _ = channel.append(stream, bytes);
}

fn work(channel: &mut Writer) -> Result<(), String> {
    let text = std::fs::read(JOB_PATH).map_err(|error| format!("reading {JOB_PATH}: {error}"))?;
    let job: Job = serde_json::from_slice(&text)
        .map_err(|error| format!("understanding {JOB_PATH}: {error}"))?;
    for module in &job.modules {
        system::load_module(module)?;
    }
    system::raise_limits()?;
    system::give_randomness()?;
    send(
        channel,
        Stream::CommandStarted,
        &system::uptime_ns().to_le_bytes(),
    );
    let status = command::run(&job, channel)?;
    if job.bring_back {
        send::tree(Path::new(OUT_DIRECTORY), channel)?;
    }
    send(channel, Stream::Exit, &u64::from(status).to_le_bytes());
    Ok(())
}
