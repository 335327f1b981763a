// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pv pages in the running scheduler's map, for the VMs that a scenario wants it for.

use std::sync::{Arc, Once};

use anyhow::Context;
use unspin_agent::{GuestPages, SteerError};
use unspin_scenario::Scenario;
use unspin_vmm::PvPages;

use crate::Error;

/// Those of our scheduler, if it runs and a VM wants them. If none runs the VMs keep their pv pages themselves, and that is said
/// once: a scheduler that comes later reads them there.
///
/// # Errors
/// When the kernel refuses.
pub fn of_running(scenario: &Scenario) -> Result<Option<Arc<PvPages>>, Error> {
    static SAID: Once = Once::new();
    let wanted = |vm: &unspin_scenario::Vm| vm.pv_page_memory == unspin_scenario::PvPageMemory::Map;
    if !scenario.vms.iter().any(wanted) {
        return Ok(None);
    }
    let maps = match GuestPages::of_running() {
        Ok(maps) => maps,
        Err(SteerError::NotRunning) => {
            SAID.call_once(|| {
                eprintln!(
                    "pv_page_memory = \"map\": no scheduler of ours runs when these VMs start (`unspin steer -- COMMAND` starts one \
                     before them): their pv_page lie in their own memory"
                );
            });
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let pages = PvPages::new(maps.pages, &maps.owners);
    let pages = pages.context("mapping the scheduler's pv pages")?;
    Ok(Some(Arc::new(pages)))
}

/// Says how many VMs got none.
pub fn say_missed(pages: Option<&Arc<PvPages>>) {
    let missed = pages.map_or(0, |pages| pages.missed());
    if missed > 0 {
        eprintln!(
            "pv_page_memory = \"map\": the scheduler had no page left for {missed} VMs: their pv_page lie in their own memory"
        );
    }
}
