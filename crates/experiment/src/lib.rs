// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies compared on the same work, whatever the world that does the work.
//!
//! A [`Plan`] says what is compared and [`steps`] in which order (ABBA, with the null and the ideal). A [`World`] takes the
//! steps: VMs of ours under KVM ([`kvm`]), Linux guests ([`linux`]), threads of the host ([`host`]), or the lab ([`lab`]). What it measured becomes one kind of
//! [`Row`], whose figures are [`Estimate`]s. [`matrix`] and [`demo`] are lists of comparisons that are built in, [`cells`] runs
//! each in a testbed of its own, [`TableFile`] keeps what is finished and goes on there; [`prediction`] is what the lab says beforehand.
//!
//! Beside comparisons: [`sweep`], a grid of runs of the lab; [`calibrate`], what things cost here, and [`conform`], whether the
//! lab predicts with that what was measured; [`lab_run`], [`vm_run`] and [`linux_run`], one run with all its rows; [`linux_run::locks`],
//! the papers' locks in Linux guests; [`lock_matrix`], the locks in guests; [`threads`], the locks between threads, and [`plot`],
//! a picture of both; [`engine`], the lab's engine beside others;
//! [`observing`], what observing costs; [`in_testbed`], what a command needs to run in the testbed;
//! [`rival`], other sched_ext schedulers. [`doctor`]: what of all this a machine can do.

pub mod axes;
pub mod buckets;
pub mod calibrate;
pub mod cells;
pub mod conform;
pub mod costs;
pub mod demo;
pub mod doctor;
pub mod engine;
mod error;
mod estimate;
mod host_keys;
pub mod in_testbed;
pub mod lab_run;
pub mod linux_run;
pub mod lock_matrix;
pub mod matrix;
pub mod observing;
mod plan;
pub mod plot;
pub mod pooled;
pub mod prediction;
mod progress;
pub mod rival;
mod row;
mod sample;
pub mod sweep;
mod table_file;
pub mod vm_run;
pub mod watch;
mod world;

pub use error::Error;
pub use estimate::{Estimate, Verdict};
pub use plan::{Column, Columns, Plan, Programs, Steered, Step, Vms, check_user_policies, steps};
pub use progress::{Progress, Quiet, Session, Work};
pub use row::{Row, lock, rows, shape};
pub use sample::{Sample, Samples};
pub use table_file::TableFile;
pub use world::{Taken, World, host, ideal_of, kvm, lab, linux, run, threads};
