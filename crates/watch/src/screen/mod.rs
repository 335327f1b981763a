// SPDX-License-Identifier: MIT OR Apache-2.0
//! The screen of `unspin top`: what is shown, which keys change it, and the loop that draws it.

mod draw;
mod state;

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use ratatui::crossterm::event::{self, Event, KeyEventKind};

pub use draw::draw;
pub use state::{Screen, Sort};

use crate::{
    rates::between,
    view::{HostView, ViewSource},
};

/// How often keys and the interrupt are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Shows the host until somebody quits or `interrupt` is set. `next` gives the host's view, every `interval`.
///
/// # Errors
/// When the terminal cannot be used, or `next` fails; the terminal is as before then.
pub fn run<E: From<io::Error>>(
    interval: Duration,
    interrupt: &AtomicBool,
    mut next: impl FnMut() -> Result<HostView, E>,
) -> Result<(), E> {
    let mut earlier = next()?;
    let mut screen = Screen::default();
    // From here on the terminal is given back whatever happens, a panic included.
    let mut terminal = ratatui::try_init()?;
    let mut shown = || -> Result<(), E> {
        let mut asked = Instant::now();
        loop {
            terminal.draw(|frame| draw(frame, &mut screen))?;
            if interrupt.load(Ordering::Relaxed) || pressed(&mut screen)? {
                return Ok(());
            }
            if asked.elapsed() >= interval {
                asked = Instant::now();
                let later = next()?;
                // Whoever counts may do so more rarely.
                let is_new = later.time_ns > earlier.time_ns;
                if is_new || later.source == ViewSource::Recording || later.blind.is_some() {
                    screen.show(between(&earlier, &later));
                    earlier = later;
                }
            }
        }
    };
    let done = shown();
    ratatui::try_restore()?;
    done
}

/// Waits a moment for keys; true: quit.
fn pressed(screen: &mut Screen) -> io::Result<bool> {
    if !event::poll(POLL_INTERVAL)? {
        return Ok(false);
    }
    match event::read()? {
        Event::Key(key) if key.kind == KeyEventKind::Press => Ok(screen.press(key)),
        _ => Ok(false),
    }
}
