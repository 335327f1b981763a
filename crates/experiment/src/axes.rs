// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the measurements of locks vary, as the command line names it, and in words.

use std::time::Duration;

use unspin_abi::LockKind;
use unspin_lockbench::Contender;
use unspin_scenario::{Distribution, Shape, WorkUnit, format_duration};

use crate::Error;

/// The locks of `--lock`: names, or "all".
///
/// # Errors
/// [`Error::Usage`]: a name that no lock has.
pub fn our_locks(names: &[String]) -> Result<Vec<LockKind>, Error> {
    if names == ["all"] {
        return Ok(LockKind::all().collect());
    }
    let find = |name: &String| {
        LockKind::from_name(name).ok_or_else(|| {
            let known: Vec<_> = LockKind::all().map(LockKind::name).collect();
            Error::Usage(format!(
                "--lock {name}: there is no such lock; there are {}",
                known.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

/// The baselines of `--baselines`: names, "all" or "none".
///
/// # Errors
/// [`Error::Usage`]: a name that no baseline of this build has.
pub fn baselines(names: &[String]) -> Result<Vec<Contender>, Error> {
    match names {
        [one] if one == "all" => return Ok(Contender::baselines().collect()),
        [one] if one == "none" => return Ok(Vec::new()),
        _ => {}
    }
    let find = |name: &String| {
        Contender::from_name(name)
            .filter(|contender| contender.is_baseline())
            .ok_or_else(|| {
                let known: Vec<_> = Contender::baselines().map(Contender::name).collect();
                Error::Usage(format!(
                    "--baselines {name}: this build has no such baseline; it has {}",
                    known.join(", ")
                ))
            })
    };
    names.iter().map(find).collect()
}

/// Each of these times, which are below 2^64 ns, always.
pub fn constants(times: &[Duration]) -> Vec<Distribution> {
    let constant = |time: &Duration| Distribution {
        unit: WorkUnit::Nanoseconds,
        shape: Shape::Constant(time.as_nanos() as u64),
    };
    times.iter().map(constant).collect()
}

/// A distribution in words: its constant, or its shape and numbers.
pub fn describe_work(work: &Distribution) -> String {
    let value = |value: u64| match work.unit {
        WorkUnit::Nanoseconds => format_duration(value),
        WorkUnit::Loops => format!("{value} loops"),
    };
    match work.shape {
        Shape::Constant(constant) => value(constant),
        Shape::Uniform { low, high } => format!("{} to {}", value(low), value(high)),
        Shape::Exponential { mean } => format!("exponential {}", value(mean)),
    }
}

/// The title of a plot's panel: what is the same of all its marks.
pub(crate) fn describe_point(hold: &Distribution, think: &Distribution, neighbours: u32) -> String {
    let beside = match neighbours {
        0 => String::new(),
        count => format!(", {count} beside"),
    };
    let (hold, think) = (describe_work(hold), describe_work(think));
    format!("hold {hold}, think {think}{beside}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_in_words() {
        let work = |unit, shape| describe_work(&Distribution { unit, shape });
        let times = constants(&[Duration::from_nanos(50)]);
        assert_eq!(describe_work(&times[0]), "50ns");
        assert_eq!(work(WorkUnit::Loops, Shape::Constant(7)), "7 loops");
        let uniform = Shape::Uniform { low: 1, high: 2 };
        assert_eq!(work(WorkUnit::Loops, uniform), "1 loops to 2 loops");
        let exponential = Shape::Exponential { mean: 2_000 };
        assert_eq!(work(WorkUnit::Nanoseconds, exponential), "exponential 2us");
        let (one, two) = (&times[0], &constants(&[Duration::ZERO])[0]);
        assert_eq!(describe_point(one, two, 3), "hold 50ns, think 0s, 3 beside");
    }

    #[test]
    fn unknown_names_are_refused_with_those_there_are() {
        let refused = |result: Result<(), Error>| match result {
            Err(Error::Usage(said)) => said,
            other => panic!("{other:?}"),
        };
        let said = refused(our_locks(&["futex".into()]).map(drop));
        assert!(said.contains("--lock futex") && said.contains("qspinlock"));
        let said = refused(baselines(&["ticket".into()]).map(drop));
        assert!(said.contains("--baselines ticket") && said.contains("glibc_mutex"));
        assert_eq!(baselines(&["none".into()]).expect("none").len(), 0);
        let all = our_locks(&["all".into()]).expect("all");
        assert_eq!(all.len(), LockKind::all().count());
    }
}
