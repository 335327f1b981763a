// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which policies are on, as written on a command line: `loan,helping=1ms,slice=8ms`. Rules of
//! `policy/steering/candidate.h` are among them: `candidates=strict`. Times are a number with a unit, `500us` or
//! `1.5ms`.

use std::{ffi::CStr, fmt, ops::RangeInclusive, str::FromStr};

use crate::{
    CandidateRule, raw,
    steering::{VcpuFacts, user_library::UserPolicyNumber},
};

/// The policies that are on, and their parameters. With none on this is `refuse-yields`.
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

/// The name for no policy: unspin's scheduler refuses every directed yield. This is the null of each comparison.
pub const REFUSE_YIELDS: &str = "refuse-yields";
/// The policy that only sets the slice (`policy/steering/slice.h`): it is never called.
const SLICE: &str = "slice";
/// Former names of policies, and their present names.
const RENAMED: [(&str, &str); 2] = [("none", REFUSE_YIELDS), ("yield-hint", "yield-buddy")];
/// The policy with the parameter "how old is recent" (`policy/steering/helping.h`).
const HELPING: &str = "helping";
/// Policies with yield buddies (`policy/steering/yield_buddy.h`), which share one threshold.
const YIELD_BUDDIES: [&str; 3] = ["debooster", "debooster-ancestor", "yield-buddy"];

impl Policies {
    /// No policy: every directed yield is refused.
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

    /// The same and this user policy, which is called before all others.
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

    /// From the numbers that a scheduler holds: [`Policies::bits`], [`Policies::slice_ns`], [`Policies::recent_ns`],
    /// [`Policies::threshold_ns`], the rule's number and [`Policies::candidate_options`].
    pub fn of_numbers(
        bits: u32,
        times_ns: [u32; 3],
        candidates: u32,
        candidate_options: u32,
    ) -> Policies {
        let [slice_ns, recent_ns, threshold_ns] = times_ns;
        let chooses = bits & raw::UNSPIN_POLICY_CANDIDATES != 0;
        let ignored = raw::UNSPIN_CANDIDATES_IGNORE_RESCHEDULE;
        Policies {
            bits,
            slice_ns,
            recent_ns,
            threshold_ns,
            candidates: CandidateRule::from_number(candidates).filter(|_| chooses),
            ignore_vectors: candidate_options & ignored != 0,
            own: None,
        }
    }

    /// The bits of `enum unspin_policy_bit`.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// Whether an interrupt that is pending in that candidate can decide a yield to it, of which all else is known that the host knows.
    pub fn read_answers(self, candidate: &VcpuFacts) -> bool {
        // SAFETY: a live reference to a struct of integers, which the call does not keep.
        unsafe { raw::policies_read_answers(self.bits, candidate) }
    }

    /// The slice of a steered vCPU, ns; `kernel_ns`: the kernel's base slice; `uses_locks`: [`uses_locks`](super::uses_locks) of that vCPU.
    pub fn length_of_slice_ns(self, kernel_ns: u64, uses_locks: bool) -> u64 {
        // SAFETY: a function of numbers alone.
        unsafe { raw::policies_length_of_slice(self.bits, self.slice_ns, kernel_ns, uses_locks) }
    }

    /// The slice that was requested, ns; 0: none.
    pub const fn slice_ns(self) -> u32 {
        self.slice_ns
    }

    /// The age up to which a fact is recent to the policy `helping`, ns.
    pub const fn recent_ns(self) -> u32 {
        self.recent_ns
    }

    /// The distance up to which a yield buddy is followed (`yield-buddy` and the debooster), ns of virtual time.
    pub const fn threshold_ns(self) -> u32 {
        self.threshold_ns
    }

    /// Names of all policies, in the order in which they are called; `slice` last.
    pub fn names() -> impl Iterator<Item = &'static str> {
        bits_in_order().map(name).chain([SLICE])
    }

    /// The same with one more word, such as `loan` or `slice=500us`.
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
                self.slice_ns = parse_time(word, value, allowed)?;
                return Ok(self);
            }
            (HELPING, Some(value)) => {
                self.recent_ns = parse_time(word, value, 0..=raw::UNSPIN_RECENT_MAX_NS)?;
            }
            (name, Some(value)) if YIELD_BUDDIES.contains(&name) => {
                let allowed = 0..=raw::UNSPIN_THRESHOLD_MAX_NS;
                self.threshold_ns = parse_time(word, value, allowed)?;
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

/// The message for a policy's former name; `None`: it is no former name.
pub fn renamed(word: &str) -> Option<String> {
    let (_, now) = RENAMED.iter().find(|(before, _)| *before == word)?;
    Some(format!("the policy `{word}` is called `{now}` now"))
}

/// The policies' bits in the order in which they are called.
fn bits_in_order() -> impl Iterator<Item = u32> {
    // SAFETY: a place below UNSPIN_POLICY_COUNT.
    (0..raw::UNSPIN_POLICY_COUNT).map(|place| unsafe { raw::unspin_policy_at(place) })
}

fn name(bit: u32) -> &'static str {
    // SAFETY: a constant C string of ASCII for each bit below UNSPIN_POLICY_COUNT, and callers stay below that.
    unsafe { CStr::from_ptr(raw::unspin_policy_name(bit)) }
        .to_str()
        .unwrap_or("?")
}

impl FromStr for Policies {
    type Err = String;

    /// Names separated by commas, some with a time as in `helping=1ms,slice=8ms`; or `refuse-yields`.
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
        let with = |name, value_ns| format!("{name}={}", format_time(value_ns));
        let own = self.has_user_policy().then(|| "user-policy".to_owned());
        let ours = bits_in_order()
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
        if self.samples_spinners() {
            on.push(SPIN_SAMPLES.to_owned());
        }
        if self.slice_ns != 0 {
            on.push(with(SLICE, self.slice_ns));
        }
        out.write_str(if on.is_empty() { REFUSE_YIELDS } else { "" })?;
        out.write_str(&on.join(","))
    }
}

/// The word before the name of a rule.
pub(crate) const CANDIDATES: &str = "candidates";
/// The option of a rule by which vCPUs that were sent only a reschedule do not count as receivers.
pub(crate) const IGNORE_VECTORS: &str = "ignore-vectors";
/// The word by which spinning vCPUs are found before their window is over (`policy/classify/spin_samples.h`).
const SPIN_SAMPLES: &str = "spin-samples";
/// Rules of VEE'21 that may be named without `candidates=`.
const SHORT: [CandidateRule; 3] = [
    CandidateRule::Strict,
    CandidateRule::Usermode,
    CandidateRule::AvoidOverboost,
];

impl Policies {
    /// The rule by which candidates are chosen for a spinner; `None`: KVM's own.
    pub const fn candidates(self) -> Option<CandidateRule> {
        self.candidates
    }

    /// Whether vCPUs that may be spinning are sampled.
    pub const fn samples_spinners(self) -> bool {
        self.bits & raw::UNSPIN_POLICY_SPIN_SAMPLES != 0
    }

    /// Whether a scheduler needs its programs for rules of candidates under them.
    pub const fn need_candidates(self) -> bool {
        self.candidates.is_some() || self.samples_spinners()
    }

    /// The rule's `UNSPIN_CANDIDATES_*`.
    pub const fn candidate_options(self) -> u32 {
        if self.ignore_vectors {
            raw::UNSPIN_CANDIDATES_IGNORE_RESCHEDULE
        } else {
            0
        }
    }

    /// Whether that rule ignores receivers of a reschedule alone.
    pub const fn ignores_vectors(self) -> bool {
        self.ignore_vectors
    }

    /// Words for rules of candidates, their options, and when a spinner is offered one.
    pub fn candidate_names() -> impl Iterator<Item = String> {
        let rules = CandidateRule::ALL.into_iter();
        let words = rules.map(|rule| format!("{CANDIDATES}={}", rule.name()));
        words.chain([IGNORE_VECTORS, SPIN_SAMPLES].map(str::to_owned))
    }

    /// Adds one of these words; `None`: the word is something else.
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
            (SPIN_SAMPLES, None) => {
                self.bits |= raw::UNSPIN_POLICY_SPIN_SAMPLES;
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

    /// Returns itself, unless an option has no rule.
    pub(crate) fn check_candidates(self) -> Result<Policies, String> {
        if self.ignore_vectors && self.candidates.is_none() {
            return Err(format!(
                "`{IGNORE_VECTORS}` is about a rule of candidates, as in strict,{IGNORE_VECTORS}"
            ));
        }
        Ok(self)
    }
}

const UNITS: [(&str, u32); 3] = [("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// `value` in ns, a number with a unit as in `500us`, if it is within `allowed_ns`. `word` is what the user wrote, for the error.
///
/// # Errors
/// Says which times are allowed.
pub fn parse_time(word: &str, value: &str, allowed_ns: RangeInclusive<u32>) -> Result<u32, String> {
    let (low, high) = (
        format_time(*allowed_ns.start()),
        format_time(*allowed_ns.end()),
    );
    nanoseconds(value)
        .filter(|ns| allowed_ns.contains(ns))
        .ok_or_else(|| format!("`{word}`: a time from {low} to {high}, as in 500us or 1.5ms"))
}

/// `None`: not a number of 0 or more with a unit, too large, or a fraction of a nanosecond.
fn nanoseconds(text: &str) -> Option<u32> {
    const PLACES: usize = 6;
    let (number, unit_ns) = UNITS
        .iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, u64::from(*ns))))?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > PLACES {
        return None;
    }
    // In millionths of the unit.
    let millionths: u64 = format!("{whole}{part:0<PLACES$}").parse().ok()?;
    let ns = millionths.checked_mul(unit_ns)?;
    (ns % 1_000_000 == 0)
        .then(|| u32::try_from(ns / 1_000_000).ok())
        .flatten()
}

/// Formats a time in the largest unit that leaves no fraction.
pub fn format_time(ns: u32) -> String {
    let (unit, unit_ns) = UNITS
        .into_iter()
        .find(|(_, unit_ns)| ns % unit_ns == 0)
        .expect("1 ns divides all");
    format!("{}{unit}", ns / unit_ns)
}
