// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin steer` says when it is over.

use unspin_agent::{
    ChosenPolicies, WindowBound, WindowVendor,
    steer::{DryFigures, Steered, WindowFigures, account, guest_audit},
};
use unspin_report::{Document, Table};

/// Counters, account, audit and windows; with `each_epoch` also every epoch.
pub fn steered(document: &mut Document, done: &Steered, each_epoch: bool) {
    if let Some(counters) = &done.counters {
        document.table(Table::of(
            "What the scheduler did",
            counters.iter().copied(),
        ));
        document.table(Table::of(
            "Preemptions in critical sections",
            [account(counters)],
        ));
    }
    if let Some(audit) = &done.guest_audit {
        let rows = guest_audit(audit);
        document.table(Table::of("What guests claimed", rows));
    }
    if let Some(vms) = &done.vm_policies {
        document.table(Table::of("Who had which policies", vms.iter().cloned()));
    }
    if let Some(moved) = &done.moved {
        document.table(Table::of("What was moved", moved.iter().cloned()));
    }
    if let Some(figures) = &done.windows {
        windows(document, figures, each_epoch);
    }
}

fn windows(document: &mut Document, figures: &WindowFigures, each_epoch: bool) {
    let title = match figures.bound {
        WindowBound::Window(WindowVendor::Amd) => {
            "Windows in PAUSEs, by epochs of 1,000 pause-loop exits"
        }
        WindowBound::Window(WindowVendor::Intel) => {
            "Windows in TSC cycles, by epochs of 1,000 pause-loop exits"
        }
        WindowBound::Threshold => {
            "Guests' spin thresholds in spins, by epochs of 1,000 waits that ended in a halt, a yield or a call for help"
        }
    };
    document.table(Table::of(title, figures.vms()));
    if each_epoch {
        document.table(Table::of("Epochs", figures.epochs()));
    }
    let totals = &figures.totals;
    document.note(match figures.bound {
        WindowBound::Window(_) => format!(
            "{} pause-loop exits, {} windows changed, {} not let be changed, {} epochs lost, {} exits of unknown vCPUs",
            totals.exits, totals.changes, totals.refusals, totals.lost_epochs, totals.left_alone
        ),
        WindowBound::Threshold => format!(
            "{} waits, {} vCPUs with a page to be told in, {} times told another threshold, {} pages not to be read or written, \
             {} epochs lost, {} exits of unknown vCPUs",
            totals.exits,
            totals.pv_page,
            totals.changes,
            totals.lost_pv_pages,
            totals.lost_epochs,
            totals.left_alone
        ),
    });
}

/// Of a dry run: what would have been decided, and who would have been chosen.
pub fn dry(document: &mut Document, chosen: &ChosenPolicies, done: &DryFigures) {
    document.table(Table::of("What would have been decided", done.counters()));
    let (choices, more) = done.choices();
    document.table(Table::of("Who would have been chosen", choices));
    if let Some((more, times)) = more {
        document.note(format!(
            "{more} more choices, {times} times in all, are not shown"
        ));
    }
    if !done.sees_yields {
        document.note(
            "This kernel lets nobody hook its functions (CONFIG_FPROBE): yields were not seen.",
        );
    }
    document.note(format!(
        "Policy {chosen}. The host's own scheduler has decided all the same: had the policy been in charge, other yields would \
         have followed."
    ));
    document.note(
        "Nothing was lent or granted, so nobody was asked when to end that (on_poll); guests' asks for help were not looked into.",
    );
}
