// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way to a state, and that way gone again.

use super::search::Search;
use crate::schedule::Schedule;

impl Search<'_> {
    /// From the very start.
    pub(super) fn path(&self, state: u32) -> Schedule {
        let mut choices = Vec::new();
        let mut at = state as usize;
        while at != 0 {
            let (from, choice) = self.origins[at];
            choices.push(choice);
            at = from as usize;
        }
        choices.reverse();
        Schedule(choices)
    }

    /// What happens on that way, request by request; ends early where it does not apply.
    pub(super) fn replay(&mut self, schedule: &Schedule) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(fault) = self.begin() {
            return vec![format!("{fault:?}")];
        }
        for &choice in &schedule.0 {
            let request = self.world.pending(choice.thread);
            let line = format!("{choice:<3} {request:?}");
            let fault = self.take(choice);
            lines.push(format!("{line:<50} {:?}", self.world.words()));
            if let Some(fault) = fault {
                lines.push(format!("{fault:?}"));
                break;
            }
        }
        for thread in 0..self.world.threads() {
            let next = self.world.pending(thread);
            lines.push(format!("thread {thread}: {next:?}"));
        }
        lines
    }
}
