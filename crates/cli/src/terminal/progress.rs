// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress on standard error: what goes on when that is a terminal; what is done also when it is none.

use std::{cell::RefCell, io, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use unspin_experiment::{Progress, Session, Work};

use crate::terminal::interrupt;

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

    /// A line that stays: one step of a work of many minutes is done, and a run that is killed has shown it.
    pub fn done(&self, message: &str) {
        self.0.suspend(|| eprintln!("{message}"));
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

    /// The same with the time that is left, for many steps that take about as long each.
    pub fn with_rest(total: usize, message: &str) -> Steps {
        let steps = Steps::start(total, message);
        let template = "{msg} {wide_bar} {pos}/{len} [{elapsed}, {eta} left]";
        if let Ok(style) = ProgressStyle::with_template(template) {
            steps.0.set_style(style);
        }
        steps.0.enable_steady_tick(Duration::from_millis(500));
        steps
    }

    /// A line that stays above the bar.
    pub fn line(&self, line: &str) {
        self.0.suspend(|| eprintln!("{line}"));
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

/// How far an experiment is, on this terminal.
pub struct Experiment {
    /// Whether each step that is done is a line that stays.
    lines: bool,
    shown: RefCell<Option<Shown>>,
}

enum Shown {
    Activity(Activity),
    Steps(Steps),
}

impl Experiment {
    /// With a line for each step that is done, or without.
    pub fn new(lines: bool) -> Experiment {
        Experiment {
            lines,
            shown: RefCell::new(None),
        }
    }

    /// What an experiment has from this process: this, and Ctrl-C.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn session(&self) -> io::Result<Session<'_>> {
        Ok(Session {
            progress: self,
            interrupt: interrupt::flag()?,
        })
    }
}

impl Progress for Experiment {
    fn begin(&self, what: &str, work: Work) {
        // The one before is gone before the next one is drawn.
        self.end();
        *self.shown.borrow_mut() = Some(match work {
            Work::Unknown => Shown::Activity(Activity::start(what)),
            Work::Steps(steps) => Shown::Steps(Steps::start(steps, what)),
            Work::EvenSteps(steps) => Shown::Steps(Steps::with_rest(steps, what)),
        });
    }

    fn say(&self, what: &str) {
        if let Some(Shown::Activity(activity)) = &*self.shown.borrow() {
            activity.say(what);
        }
    }

    fn line(&self, line: &str) {
        match &*self.shown.borrow() {
            Some(Shown::Activity(activity)) if self.lines => activity.done(line),
            Some(Shown::Steps(bar)) if self.lines => bar.line(line),
            _ => {}
        }
    }

    fn done(&self, steps: usize) {
        if let Some(Shown::Steps(bar)) = &*self.shown.borrow() {
            bar.done(steps);
        }
    }

    fn end(&self) {
        self.shown.borrow_mut().take();
    }
}
