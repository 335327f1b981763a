// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies compared on the same work, whatever the world that does the work.
//!
//! A [`Plan`] says what is compared and [`steps`] in which order (ABBA, with the null and the ideal). A [`World`] takes the
//! steps: VMs of ours under KVM ([`kvm`]), Linux guests ([`linux`]), threads of the host ([`host`]), or the lab ([`lab`]). What it measured becomes one kind of
//! [`Row`], whose figures are [`Estimate`]s. [`matrix`] and [`demo`] are lists of comparisons that are built in, [`cells`] runs
//! each in a testbed of its own, [`TableFile`] keeps what is finished and goes on there; [`prediction`] is what the lab says beforehand.
//!
//! Beside comparisons: [`sweep`], a grid of runs of the lab, and [`in_python`], one on a cluster, and a search; [`calibrate`], what things cost here, and [`conform`], whether the
//! lab predicts with that what was measured; [`lab_run`], [`vm_run`] and [`linux_run`], one run with all its rows; [`linux_run::locks`],
//! the papers' locks in Linux guests; [`lock_matrix`], the locks in guests; [`threads`], the locks between threads, and [`plot`],
//! a picture of both; [`engine`], the lab's engine beside others;
//! [`paper_run`], the lab's part of the papers' claims; [`observing`], what observing costs; [`in_testbed`], what a command needs to run in the testbed;
//! [`rival`], other sched_ext schedulers. [`doctor`]: what of all this a machine can do.
//!
//! Without the feature `hosts` there is only what needs nothing but the lab: [`lab_run`], [`lab`] and [`sweep`].

#[cfg(feature = "hosts")]
pub mod axes;
#[cfg(feature = "hosts")]
pub mod buckets;
#[cfg(feature = "hosts")]
pub mod calibrate;
#[cfg(feature = "hosts")]
pub mod cells;
pub mod conform;
pub mod costs;
#[cfg(feature = "hosts")]
pub mod demo;
#[cfg(feature = "hosts")]
pub mod doctor;
#[cfg(feature = "hosts")]
pub mod engine;
mod error;
mod estimate;
#[cfg(feature = "hosts")]
mod host_keys;
#[cfg(feature = "hosts")]
pub mod in_python;
#[cfg(feature = "hosts")]
pub mod in_testbed;
pub mod lab_run;
#[cfg(feature = "hosts")]
pub mod linux_run;
#[cfg(feature = "hosts")]
pub mod lock_matrix;
#[cfg(feature = "hosts")]
pub mod matrix;
#[cfg(feature = "hosts")]
pub mod observing;
#[cfg(feature = "hosts")]
pub mod paper_run;
#[cfg(feature = "hosts")]
mod plan;
#[cfg(feature = "hosts")]
pub mod plot;
#[cfg(feature = "hosts")]
pub mod pooled;
#[cfg(feature = "hosts")]
pub mod prediction;
mod progress;
#[cfg(feature = "hosts")]
pub mod rival;
mod row;
mod sample;
mod steps;
pub mod sweep;
#[cfg(feature = "hosts")]
mod table_file;
#[cfg(feature = "hosts")]
pub mod vm_run;
#[cfg(feature = "hosts")]
pub mod watch;
mod world;

pub use error::Error;
pub use estimate::{Estimate, Verdict};
#[cfg(feature = "hosts")]
pub use plan::{Plan, check_user_policies};
pub use progress::{Progress, Quiet, Session, Work};
pub use row::{Row, lock, rows, shape};
pub use sample::{Sample, Samples};
pub use steps::{Column, Columns, Programs, Steered, Step, Vms, steps};
#[cfg(feature = "hosts")]
pub use table_file::TableFile;
pub use world::{Taken, World, ideal_of, lab, run};
#[cfg(feature = "hosts")]
pub use world::{host, kvm, linux, threads};
