// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress on standard error, when that is a terminal; nothing otherwise.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line that says what is going on and for how long; gone when dropped.
pub struct Activity(ProgressBar);

impl Activity {
    /// Starts with `message`.
    pub fn start(message: &str) -> Activity {
        let style = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
            .with_message(message.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Activity(bar)
    }

    /// Something else is going on.
    pub fn say(&self, message: &str) {
        self.0.set_message(message.to_owned());
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A bar over a known number of steps; gone when dropped.
pub struct Steps(ProgressBar);

impl Steps {
    /// A bar of `total` steps.
    pub fn start(total: usize, message: &str) -> Steps {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} [{elapsed}]");
        let target = ProgressDrawTarget::stderr();
        Steps(
            ProgressBar::with_draw_target(Some(total as u64), target)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                .with_message(message.to_owned()),
        )
    }

    /// So many are done.
    pub fn done(&self, steps: usize) {
        self.0.set_position(steps as u64);
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
