// SPDX-License-Identifier: MIT OR Apache-2.0
//! What things cost on this machine, as the lab takes it (`unspin lab calibrate`): programs between threads and, if wanted, in
//! a guest under this KVM; none of them contains a lock.

mod figures;
mod guest;

use std::fmt::Write;

pub use figures::Figure;
use figures::figures;
use guest::{GuestTimes, median};
use unspin_lab::costs::Costs;
use unspin_lockbench::costs::{self, CpuHogs, pin_to};
use unspin_report::{COMMIT, row};
use unspin_scenario::Host;

use crate::{Error, Session, Work};

row! {
    "cost", ["lab calibrate"];
    /// What one thing costs here, in the unit that ends its name.
    pub struct CostRow {
        /// Its name in the table `[lab.costs]`.
        cost: &'static str = ("cost", Text),
        /// Median of the tries, rounded; null: not measured.
        value: Option<u32> = ("measured", Count),
        /// Half of the tries lie from here.
        quartile_low: Option<f64> = ("half from", Count),
        /// To here.
        quartile_high: Option<f64> = ("to", Count),
        /// Tries.
        tries: usize,
        /// The lab's default.
        default: Option<u64> = ("default", Count),
        /// By what program, or why it was not measured.
        how: &'static str = ("by", Text),
    }
}

/// A row for each figure.
pub fn rows(figures: &[Figure]) -> impl Iterator<Item = CostRow> {
    // A struct of numbers.
    let defaults = serde_json::to_value(Costs::default()).unwrap_or_default();
    figures.iter().map(move |figure| CostRow {
        cost: figure.cost,
        value: figure.value(),
        quartile_low: figure.quartiles().map(|(low, _)| low),
        quartile_high: figure.quartiles().map(|(_, high)| high),
        tries: figure.tries.len(),
        default: defaults.get(figure.cost).and_then(|value| value.as_u64()),
        how: figure.how,
    })
}

/// Measures all costs of the lab; with `guest`, also what takes a hypervisor, under a KVM that is loaded as it says.
///
/// # Errors
/// When the system refuses a thread or an affinity mask; when KVM is not there or not as `guest` says.
pub fn measure(guest: Option<&Host>, session: &Session<'_>) -> Result<Vec<Figure>, Error> {
    let progress = session.progress;
    progress.begin("timing loops, switches and interrupts", Work::Unknown);
    let measured = (|| {
        let threads = costs::measure().map_err(anyhow::Error::new)?;
        let guest = match guest {
            None => None,
            Some(host) => {
                progress.say("timing a guest");
                Some(under_kvm(host, median(&threads.tsc_mhz))?)
            }
        };
        Ok(figures(&threads, guest.as_ref()))
    })();
    progress.end();
    measured
}

/// On the first CPU that this process may use, while all others are kept busy.
fn under_kvm(host: &Host, tsc_mhz: f64) -> Result<GuestTimes, Error> {
    let cpus = costs::cpus().map_err(anyhow::Error::new)?;
    let here = cpus[0];
    // A thread of its own: its mask goes with it.
    let measured = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pin_to(here).map_err(anyhow::Error::new)?;
            let _cpu_hogs = CpuHogs::start(&cpus, &[here]);
            guest::measure(host, here, tsc_mhz)
        });
        thread.join()
    });
    measured.unwrap_or_else(|_| Err(Error::Failed(anyhow::anyhow!("the timing thread panicked"))))
}

/// The costs as a file that [`costs::overrides_of`](crate::costs::overrides_of) reads: what was measured under `world`
/// ("threads" or "kvm") on `machine`, and in comments how, and what was not.
pub fn text(world: &str, figures: &[Figure], machine: &str) -> String {
    let mut text = format!(
        "# SPDX-License-Identifier: MIT OR Apache-2.0\n# unspin lab calibrate {world}, commit {COMMIT}, {machine}\n"
    );
    for figure in figures {
        // A String takes any text.
        let _ = match (figure.value(), figure.quartiles()) {
            (Some(value), Some((low, high))) => {
                writeln!(
                    text,
                    "{} = {value} # {low:.0} to {high:.0}: {}",
                    figure.cost, figure.how
                )
            }
            _ => writeln!(text, "# {}: {}", figure.cost, figure.how),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Error, costs::overrides_of};

    #[test]
    fn what_is_written_is_read_and_names_what_was_not_measured() {
        let figure = |cost, tries| Figure {
            cost,
            tries,
            how: "so",
        };
        let figures = [
            figure("exit_ns", vec![2.0, 7.4, 9.0]),
            figure("poll_ns", vec![]),
        ];
        let text = text("kvm", &figures, "a machine");
        assert!(text.contains("# poll_ns: so"), "{text}");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &text).expect("written");
        assert_eq!(
            overrides_of(file.path()).expect("well-formed"),
            ["lab.costs.exit_ns=7"]
        );
        std::fs::write(file.path(), "exit_ns = \"7\"").expect("written");
        assert!(matches!(overrides_of(file.path()), Err(Error::Usage(_))));
        assert!(matches!(
            overrides_of(Path::new("/nonexistent")),
            Err(Error::Usage(_))
        ));
    }
}
