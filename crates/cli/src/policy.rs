// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin policy`: names, switching while it runs, and taking logged decisions again.

use anyhow::anyhow;
use unspin_agent::set_running_policies;
use unspin_steering::Policies;

use crate::{arguments::PolicyVerb, decision_log, failure::Failure};

/// Does one of them.
pub fn run(verb: &PolicyVerb) -> Result<(), Failure> {
    match verb {
        PolicyVerb::List => {
            println!("none");
            Policies::names().for_each(|name| println!("{name}"));
            Ok(())
        }
        PolicyVerb::Set(arguments) => {
            set_running_policies(arguments.policy).map_err(anyhow::Error::from)?;
            Ok(())
        }
        PolicyVerb::Replay(arguments) => {
            let records = decision_log::read(&arguments.file)?;
            let differ = records.iter().filter(|record| !record.replays()).count();
            if let Some(first) = records.iter().find(|record| !record.replays()) {
                return Err(anyhow!(
                    "{differ} of {} decisions come out otherwise here; the first: {first:?}",
                    records.len()
                )
                .into());
            }
            println!("{} decisions: the same to the bit", records.len());
            Ok(())
        }
    }
}
