// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which policies are on, by their words: `loan,helping=1ms,slice=8ms`.

use std::{ffi::CStr, fmt, str::FromStr};

use crate::{
    CandidateRule, raw,
    steering::{
        candidates::{CANDIDATES, IGNORE_VECTORS},
        duration,
        user_library::UserPolicyNumber,
    },
};

/// Which policies are switched on, and their parameters; none of them is the policy `refuse-yields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    pub(crate) bits: u32,
    slice_ns: u32,
    recent_ns: u32,
    threshold_ns: u32,
    pub(crate) candidates: Option<CandidateRule>,
    pub(crate) ignore_vectors: bool,
    pub(crate) own: Option<UserPolicyNumber>,
}

/// No policy: our scheduler with every directed yield refused, which is the null of each comparison.
pub const REFUSE_YIELDS: &str = "refuse-yields";
/// The policy that is a slice and nothing else (`policy/steering/slice.h`): it is never asked.
const SLICE: &str = "slice";
/// Names that policies had before, and have now.
const RENAMED: [(&str, &str); 2] = [("none", REFUSE_YIELDS), ("yield-hint", "yield-buddy")];
/// The policy with a parameter: what is recent (`policy/steering/helping.h`).
const HELPING: &str = "helping";
/// Policies whose yield buddies may be too unfair (`policy/steering/yield_buddy.h`); they share one threshold.
const YIELD_BUDDIES: [&str; 3] = ["debooster", "debooster-ancestor", "yield-buddy"];

impl Policies {
    /// Every directed yield is refused.
    pub const REFUSE_YIELDS: Policies = Policies {
        bits: 0,
        slice_ns: 0,
        recent_ns: raw::UNSPIN_RECENT_NS,
        threshold_ns: raw::UNSPIN_THRESHOLD_NS,
        candidates: None,
        ignore_vectors: false,
        own: None,
    };

    /// The same and a user policy, whose functions are not in this library.
    pub const fn with_user_policy(mut self) -> Policies {
        self.bits |= raw::UNSPIN_POLICY_USER;
        self
    }

    /// The same and that policy of a user's own, which is asked before all of them.
    pub const fn with_loaded(mut self, own: UserPolicyNumber) -> Policies {
        self.own = Some(own);
        self.with_user_policy()
    }

    /// Whether a user policy is among them.
    pub const fn has_user_policy(self) -> bool {
        self.bits & raw::UNSPIN_POLICY_USER != 0
    }

    /// Whether a vCPU that begins a slice calls its siblings.
    pub const fn calls_siblings(self) -> bool {
        self.bits & raw::unspin_policy_gang != 0
    }

    /// The bits of `enum unspin_policy_bit`.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// The slice of steered vCPUs, ns; 0: the kernel's own.
    pub const fn slice_ns(self) -> u32 {
        self.slice_ns
    }

    /// Up to what age something is recent to the policy `helping`, ns.
    pub const fn recent_ns(self) -> u32 {
        self.recent_ns
    }

    /// How much further a candidate may be before a yield buddy to run it is too unfair (`yield-buddy` and the debooster), ns.
    pub const fn threshold_ns(self) -> u32 {
        self.threshold_ns
    }

    /// Names of all policies that can be switched on, in the order in which they are asked; `slice` last.
    pub fn names() -> impl Iterator<Item = &'static str> {
        // SAFETY: a place below UNSPIN_POLICY_COUNT.
        let at = |place| unsafe { raw::unspin_policy_at(place) };
        (0..raw::UNSPIN_POLICY_COUNT)
            .map(at)
            .map(name)
            .chain([SLICE])
    }

    /// The same with one more, as in `loan` or `slice=500us`.
    fn with(mut self, word: &str) -> Result<Policies, String> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if let Some(changed) = self.with_candidates(name, value) {
            return changed;
        }
        match (name, value) {
            (SLICE, None) => return Err("`slice` needs a time, as in slice=500us".to_owned()),
            (SLICE, Some(value)) => {
                let allowed = raw::UNSPIN_SLICE_MIN_NS..=raw::UNSPIN_SLICE_MAX_NS;
                self.slice_ns = duration::parse(word, value, allowed)?;
                return Ok(self);
            }
            (HELPING, Some(value)) => {
                self.recent_ns = duration::parse(word, value, 0..=raw::UNSPIN_RECENT_MAX_NS)?;
            }
            (name, Some(value)) if YIELD_BUDDIES.contains(&name) => {
                let allowed = 0..=raw::UNSPIN_THRESHOLD_MAX_NS;
                self.threshold_ns = duration::parse(word, value, allowed)?;
            }
            (_, Some(_)) => {
                let buddies = YIELD_BUDDIES.join(", ");
                return Err(format!(
                    "`{word}`: only slice, helping, {buddies} take a time"
                ));
            }
            (_, None) => {}
        }
        let bit = (0..raw::UNSPIN_POLICY_COUNT).find(|bit| self::name(*bit) == name);
        let bit = bit.ok_or_else(|| {
            if let Some(now) = renamed(word) {
                return now;
            }
            let known = Policies::names().collect::<Vec<_>>().join(", ");
            format!(
                "there is no policy `{word}`: {REFUSE_YIELDS}, or some of {known}, apart by commas"
            )
        })?;
        self.bits |= 1 << bit;
        Ok(self)
    }
}

impl Default for Policies {
    /// [`Policies::REFUSE_YIELDS`].
    fn default() -> Policies {
        Policies::REFUSE_YIELDS
    }
}

/// What to say to whoever writes a policy's former name; `None`: no policy ever had that one.
pub fn renamed(word: &str) -> Option<String> {
    let (_, now) = RENAMED.iter().find(|(before, _)| *before == word)?;
    Some(format!("the policy `{word}` is called `{now}` now"))
}

fn name(bit: u32) -> &'static str {
    // SAFETY: a constant C string of ASCII for each bit below UNSPIN_POLICY_COUNT, and callers stay below that.
    unsafe { CStr::from_ptr(raw::unspin_policy_name(bit)) }
        .to_str()
        .unwrap_or("?")
}

impl FromStr for Policies {
    type Err = String;

    /// Names apart by commas, some with a time as in `helping=1ms,slice=8ms`, or `refuse-yields`.
    fn from_str(text: &str) -> Result<Policies, String> {
        if text == REFUSE_YIELDS {
            return Ok(Policies::REFUSE_YIELDS);
        }
        let policies = text
            .split(',')
            .try_fold(Policies::REFUSE_YIELDS, Policies::with)?;
        policies.check_candidates()
    }
}

impl fmt::Display for Policies {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |name, value_ns| format!("{name}={}", duration::format(value_ns));
        let own = self.has_user_policy().then(|| "user-policy".to_owned());
        let ours = (0..raw::UNSPIN_POLICY_COUNT)
            .filter(|bit| self.bits >> bit & 1 == 1)
            .map(|bit| match name(bit) {
                HELPING if self.recent_ns != raw::UNSPIN_RECENT_NS => with(HELPING, self.recent_ns),
                name if YIELD_BUDDIES.contains(&name)
                    && self.threshold_ns != raw::UNSPIN_THRESHOLD_NS =>
                {
                    with(name, self.threshold_ns)
                }
                name => name.to_owned(),
            });
        let mut on: Vec<String> = own.into_iter().chain(ours).collect();
        if let Some(rule) = self.candidates {
            on.push(format!("{CANDIDATES}={}", rule.name()));
        }
        if self.ignore_vectors {
            on.push(IGNORE_VECTORS.to_owned());
        }
        if self.slice_ns != 0 {
            on.push(with(SLICE, self.slice_ns));
        }
        out.write_str(if on.is_empty() { REFUSE_YIELDS } else { "" })?;
        out.write_str(&on.join(","))
    }
}
