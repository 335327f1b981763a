// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where samples are taken, behind one trait; and what the scenario's ideal is.

#[cfg(feature = "hosts")]
pub mod host;
#[cfg(feature = "hosts")]
pub mod kvm;
pub mod lab;
#[cfg(feature = "hosts")]
pub mod linux;
#[cfg(feature = "hosts")]
mod steering;
#[cfg(feature = "hosts")]
pub mod threads;

use unspin_scenario::Scenario;

use crate::{
    Error,
    sample::Samples,
    steps::{Column, Step},
};

/// A place where work goes on while policies come and go.
pub trait World {
    /// What is measured of one column in one pair.
    type Sample;

    /// Takes any step but [`Step::Measure`].
    ///
    /// # Errors
    /// When the work or the scheduler cannot be had, or ends before it is told to.
    fn change(&mut self, step: Step) -> Result<(), Error>;

    /// Measures that column for that pair, under what the steps before have set.
    ///
    /// # Errors
    /// As [`World::change`].
    fn measure(&mut self, column: Column, pair: usize) -> Result<Taken<Self::Sample>, Error>;

    /// After the last step: what was left for later.
    ///
    /// # Errors
    /// As [`World::change`].
    fn finish(&mut self, _samples: &mut Samples<Self::Sample>) -> Result<(), Error> {
        Ok(())
    }
}

/// What came of measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<S> {
    /// A sample.
    Sample(S),
    /// None: under that policy the work stood still, which is a result.
    StoodStill,
    /// It is worked out in [`World::finish`], beside others.
    Later,
}

/// Takes all steps in that world.
///
/// # Errors
/// The world's first; nothing of it is left running when the world is dropped.
pub fn run<W: World>(world: &mut W, steps: &[Step]) -> Result<Samples<W::Sample>, Error> {
    let mut samples = Samples::default();
    for &step in steps {
        let Step::Measure(column, pair) = step else {
            world.change(step)?;
            continue;
        };
        match world.measure(column, pair)? {
            Taken::Sample(sample) => drop(samples.taken.insert((column, pair), sample)),
            Taken::StoodStill => drop(samples.stood_still.insert(column)),
            Taken::Later => {}
        }
    }
    world.finish(&mut samples)?;
    Ok(samples)
}

/// The same work where nobody waits for a CPU: one VM of the first group, as many vCPUs as CPUs.
pub fn ideal_of(scenario: &Scenario, cpus: u32) -> Scenario {
    let mut ideal = scenario.clone();
    ideal.vms.truncate(1);
    for vm in &mut ideal.vms {
        vm.count = 1;
        vm.vcpus = cpus;
    }
    ideal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::{Columns, Unsteered, steps};

    #[test]
    fn the_ideal_is_one_vm_that_fits() {
        let text =
            "iterations = 1\n[[vm]]\ncount = 2\nvcpus = 4\nlock = \"ticket\"\nhold = \"1us\"\n";
        let scenario = Scenario::parse(text, "s.toml").expect("a scenario");
        let ideal = ideal_of(&scenario, 2);
        assert_eq!((ideal.vms[0].count, ideal.vms[0].vcpus), (1, 2));
        assert_eq!(ideal.vms[0].hold, scenario.vms[0].hold);
    }

    /// Its steps in order; the second policy's second pair stands still, the ideal is left for later.
    #[derive(Default)]
    struct Scripted {
        steps: Vec<Step>,
        later: Vec<(Column, usize)>,
    }

    impl World for Scripted {
        type Sample = usize;

        fn change(&mut self, step: Step) -> Result<(), Error> {
            self.steps.push(step);
            Ok(())
        }

        fn measure(&mut self, column: Column, pair: usize) -> Result<Taken<usize>, Error> {
            self.steps.push(Step::Measure(column, pair));
            Ok(match (column, pair) {
                (Column::Ideal, pair) => {
                    self.later.push((column, pair));
                    Taken::Later
                }
                (Column::Policy(1), 1) => Taken::StoodStill,
                _ => Taken::Sample(pair),
            })
        }

        fn finish(&mut self, samples: &mut Samples<usize>) -> Result<(), Error> {
            let later = self.later.drain(..);
            samples.taken.extend(later.map(|key| (key, 7)));
            Ok(())
        }
    }

    #[test]
    fn a_world_takes_every_step_and_its_samples_are_kept_by_column_and_pair() {
        let columns = Columns {
            ideal: true,
            null: true,
            policies: 2,
            unsteered: Unsteered::default(),
            rivals: 0,
            steer: true,
        };
        let steps = steps(2, columns);
        let mut world = Scripted::default();
        let samples = run(&mut world, &steps).expect("nothing fails");
        assert_eq!(world.steps, steps);
        assert_eq!(samples.of(Column::Ideal), [&7, &7]);
        assert_eq!(samples.of(Column::Policy(0)), [&0, &1]);
        assert_eq!(samples.of(Column::Policy(1)), [&0]);
        assert_eq!(samples.stood_still, [Column::Policy(1)].into());
    }

    #[test]
    fn the_first_error_ends_it() {
        struct Broken(usize);
        impl World for Broken {
            type Sample = usize;
            fn change(&mut self, _: Step) -> Result<(), Error> {
                self.0 += 1;
                Err(Error::Interrupted)
            }
            fn measure(&mut self, _: Column, _: usize) -> Result<Taken<usize>, Error> {
                panic!("nothing is measured after an error")
            }
        }
        let mut world = Broken(0);
        let columns = Columns {
            ideal: true,
            null: false,
            policies: 0,
            unsteered: Unsteered::default(),
            rivals: 0,
            steer: false,
        };
        let ended = run(&mut world, &steps(1, columns));
        assert!(matches!(ended, Err(Error::Interrupted)));
        assert_eq!(world.0, 1);
    }
}
