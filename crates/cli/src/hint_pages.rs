// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hints in the running scheduler's map, for the VMs that a scenario wants it for.

use std::sync::{Arc, Once};

use anyhow::Context;
use unspin_agent::{GuestPages, SteerError};
use unspin_scenario::Scenario;
use unspin_vmm::HintPages;

use crate::failure::Failure;

/// Those of our scheduler, if it runs and a VM wants them. If none runs the VMs keep their hints themselves, and that is said
/// once: a scheduler that comes later reads them there.
///
/// # Errors
/// When the kernel refuses.
pub fn of_running(scenario: &Scenario) -> Result<Option<Arc<HintPages>>, Failure> {
    static SAID: Once = Once::new();
    let wanted = |vm: &unspin_scenario::Vm| vm.hint_pages == unspin_scenario::HintPages::Map;
    if !scenario.vms.iter().any(wanted) {
        return Ok(None);
    }
    let maps = match GuestPages::of_running() {
        Ok(maps) => maps,
        Err(SteerError::NotRunning) => {
            SAID.call_once(|| {
                eprintln!(
                    "hint_pages = \"map\": no scheduler of ours runs when these VMs start (`unspin steer -- COMMAND` starts one \
                     before them): their hints lie in their own memory"
                );
            });
            return Ok(None);
        }
        Err(error) => return Err(Failure::Failed(error.into())),
    };
    let pages = HintPages::new(maps.pages, &maps.owners);
    let pages = pages.context("mapping the scheduler's hint pages")?;
    Ok(Some(Arc::new(pages)))
}

/// Says how many VMs got none.
pub fn say_missed(pages: Option<&Arc<HintPages>>) {
    let missed = pages.map_or(0, |pages| pages.missed());
    if missed > 0 {
        eprintln!(
            "hint_pages = \"map\": the scheduler had no page left for {missed} VMs: their hints lie in their own memory"
        );
    }
}
