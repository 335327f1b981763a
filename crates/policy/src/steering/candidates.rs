// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whom a spinner is offered: rules of `policy/steering/candidate.h` among the policies, `candidates=strict`.

use crate::{CandidateRule, raw, steering::Policies};

/// The word before a rule.
pub(crate) const CANDIDATES: &str = "candidates";
/// The option of a rule: who was sent a reschedule only is no receiver.
pub(crate) const IGNORE_VECTORS: &str = "ignore-vectors";
/// Rules of VEE'21 that are known by their name alone.
const SHORT: [CandidateRule; 3] = [
    CandidateRule::Strict,
    CandidateRule::Usermode,
    CandidateRule::AvoidOverboost,
];

impl Policies {
    /// The rule by which a spinner is offered other vCPUs; `None`: those that KVM proposes.
    pub const fn candidates(self) -> Option<CandidateRule> {
        self.candidates
    }

    /// `UNSPIN_CANDIDATES_*` of that rule.
    pub const fn candidate_options(self) -> u32 {
        if self.ignore_vectors {
            raw::UNSPIN_CANDIDATES_IGNORE_RESCHEDULE
        } else {
            0
        }
    }

    /// Whether receivers of a reschedule alone are none to that rule.
    pub const fn ignores_vectors(self) -> bool {
        self.ignore_vectors
    }

    /// Words for rules of candidates and their options.
    pub fn candidate_names() -> impl Iterator<Item = String> {
        let rules = CandidateRule::ALL.into_iter();
        let words = rules.map(|rule| format!("{CANDIDATES}={}", rule.name()));
        words.chain([IGNORE_VECTORS.to_owned()])
    }

    /// The same with a rule of candidates or an option of it; `None`: the word is about something else.
    pub(crate) fn with_candidates(
        mut self,
        name: &str,
        value: Option<&str>,
    ) -> Option<Result<Policies, String>> {
        let short = || SHORT.into_iter().find(|rule| rule.name() == name);
        let rule = match (name, value) {
            (IGNORE_VECTORS, None) => {
                self.ignore_vectors = true;
                return Some(Ok(self));
            }
            (CANDIDATES, value) => CandidateRule::from_name(value.unwrap_or_default()),
            (_, None) => Some(short()?),
            _ => return None,
        };
        Some(match rule {
            Some(rule) => {
                self.candidates = Some(rule);
                self.bits |= raw::UNSPIN_POLICY_CANDIDATES;
                Ok(self)
            }
            None => {
                let rules: Vec<_> = CandidateRule::ALL.iter().map(|rule| rule.name()).collect();
                let rules = rules.join(", ");
                Err(format!("`{CANDIDATES}` needs a rule, one of {rules}"))
            }
        })
    }

    /// Itself, unless an option has no rule.
    pub(crate) fn check_candidates(self) -> Result<Policies, String> {
        if self.ignore_vectors && self.candidates.is_none() {
            return Err(format!(
                "`{IGNORE_VECTORS}` is about a rule of candidates, as in strict,{IGNORE_VECTORS}"
            ));
        }
        Ok(self)
    }
}
