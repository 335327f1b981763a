// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who schedules while compared VMs keep running: our scheduler is attached, its policies are switched, and it goes.

use anyhow::anyhow;
use unspin_agent::{SteerOptions, Steerer};
use unspin_steering::{Policies, WindowPolicy};

use crate::{
    compare_order::Steered,
    failure::Failure,
    policy_choice::{ChosenPolicies, PolicyChoice},
};

/// The host's own scheduler, or ours; its own again when dropped.
pub struct Steering {
    /// By policy; one scheduler has them all.
    chosen: Vec<ChosenPolicies>,
    steerer: Option<Steerer>,
}

impl Steering {
    /// The host's own, until told otherwise.
    ///
    /// # Errors
    /// When a policy of the user's own cannot be had.
    pub fn of(policies: &[PolicyChoice]) -> Result<Steering, Failure> {
        let ready = policies.iter().map(|choice| choice.ready(false));
        Ok(Steering {
            chosen: ready.collect::<Result<_, _>>()?,
            steerer: None,
        })
    }

    /// From now on this one schedules.
    ///
    /// # Errors
    /// When our scheduler cannot be had, or the kernel has sent it away meanwhile.
    pub fn to(&mut self, to: Steered) -> Result<(), Failure> {
        let policies = match to {
            Steered::None => Policies::NONE,
            Steered::Policy(policy) if self.chosen[policy].steers => self.chosen[policy].policies,
            Steered::Not | Steered::Policy(_) => {
                self.still_attached()?;
                self.steerer = None;
                return Ok(());
            }
        };
        match &self.steerer {
            Some(steerer) => steerer.set_policies(policies),
            None => Steerer::attach(&SteerOptions {
                policies,
                // Policies of one comparison have one of the user's own between them.
                own: self.chosen.iter().find_map(|chosen| chosen.own.clone()),
                candidates: self
                    .chosen
                    .iter()
                    .any(|chosen| chosen.policies.candidates().is_some()),
                ..SteerOptions::default()
            })
            .map(|steerer| self.steerer = Some(steerer)),
        }
        .map_err(anyhow::Error::from)?;
        Ok(())
    }

    /// Whoever thinks that a policy decides must not measure the host's own scheduler.
    ///
    /// # Errors
    /// When the kernel has sent our scheduler away.
    pub fn still_attached(&self) -> Result<(), Failure> {
        let ended = self.steerer.as_ref().map(Steerer::ended).transpose();
        match ended.map_err(anyhow::Error::from)?.flatten() {
            None => Ok(()),
            Some(end) => Err(anyhow!(
                "the kernel took its own scheduler back during a comparison: {}: {}\n{}",
                end.reason,
                end.message,
                end.dump
            )
            .into()),
        }
    }

    /// Who sets pause-loop windows then, if anybody.
    pub fn window(&self, to: Steered) -> Option<WindowPolicy> {
        match to {
            Steered::Not | Steered::None => None,
            Steered::Policy(policy) => self.chosen[policy].window,
        }
    }
}
