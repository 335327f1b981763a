// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that have booted: a whole run of their load, or loads that go on while the caller does something with the host.

use std::fs::File;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Error;
use crate::fleet::Fleet;
use crate::initramfs;
use crate::options::{Options, Phase};
use crate::talk::Report;
use crate::talk::{Run, Said};

/// Guests that are ready; killed when dropped.
pub struct Guests {
    // Dropped in this order: the QEMUs before their files.
    fleet: Fleet,
    _folder: TempDir,
    command: String,
}

/// Boots the guests and runs their loads; `on_phase` is told how far it is, and stops the run with an error of its own.
///
/// # Errors
/// [`Error`]; all VMs have ended then.
pub fn run<E: From<Error>>(
    options: &Options,
    mut on_phase: impl FnMut(Phase) -> Result<(), E>,
) -> Result<Report, E> {
    let mut guests = Guests::boot(options, |count| on_phase(Phase::Booting(count)))?;
    if options.symbols {
        guests.bring_symbols()?;
    }
    on_phase(Phase::Ready)?;
    let begin = Instant::now();
    guests.load()?;
    let wanted = options.runs as usize;
    let done = |_, said: &Said| said.runs.len() >= wanted;
    let fleet = &mut guests.fleet;
    fleet.wait("running", done, |count| on_phase(Phase::Running(count)))?;
    let window = begin.elapsed();
    on_phase(Phase::Done)?;
    Ok(guests.fleet.report(guests.command, wanted, window))
}

impl Guests {
    /// Starts the guests and waits until all are ready and idle; `booting` hears how many are.
    ///
    /// # Errors
    /// [`Error`], and those of `booting`; all VMs have ended then.
    pub fn boot<E: From<Error>>(
        options: &Options,
        booting: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Guests, E> {
        options.check()?;
        File::options()
            .read(true)
            .write(true)
            .open("/dev/kvm")
            .map_err(Error::NoKvm)?;
        let folder = tempfile::tempdir().map_err(Error::system("making a temporary folder"))?;
        let image = folder.path().join("initramfs");
        let command = options.load.command(options.groups, options.loops);
        let built = initramfs::build(&options.programs, options.load, options.counts, &command)?;
        std::fs::write(&image, built).map_err(Error::file("writing", &image))?;
        let arguments = options.kernel_args();
        let mut fleet = Fleet::start(options, &arguments, folder.path(), &image)?;
        let ready = |_, said: &Said| said.ready_ns.is_some();
        fleet.wait("booting", ready, booting)?;
        fleet.check_features(options)?;
        Ok(Guests {
            fleet,
            _folder: folder,
            command,
        })
    }

    /// Lets all loads go; each is repeated for ever.
    ///
    /// # Errors
    /// When a guest cannot be told.
    pub fn load(&mut self) -> Result<(), Error> {
        (0..self.fleet.machines.len()).try_for_each(|vm| self.fleet.order(vm, "load\n"))
    }

    /// The command that each guest repeats.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Process ids of the QEMUs.
    pub fn processes(&self) -> Vec<u32> {
        let machines = self.fleet.machines.iter();
        machines.map(|machine| machine.process()).collect()
    }

    /// Lets the loads go on for so long, then takes all that the guests have said.
    ///
    /// # Errors
    /// A guest that failed or ended, or Ctrl-C.
    pub fn go_on(&mut self, time: Duration) -> Result<(), Error> {
        self.fleet.listen_for(time, "running")
    }

    /// Waits until each guest has ended the run that it is in and so many whole ones after it: these, by VM.
    ///
    /// # Errors
    /// A guest that failed or ended, took longer than the options' limit, or Ctrl-C.
    pub fn whole_runs(&mut self, count: usize) -> Result<Vec<Vec<Run>>, Error> {
        self.go_on(Duration::ZERO)?;
        let said = self.fleet.said.iter();
        let from: Vec<usize> = said.map(|said| said.runs.len() + 1).collect();
        let done = |vm: usize, said: &Said| said.runs.len() >= from[vm] + count;
        let progress = |_| Ok::<_, Error>(());
        self.fleet.wait("running", done, progress)?;
        let said = self.fleet.said.iter().zip(&from);
        Ok(said
            .map(|(said, &from)| said.runs[from..from + count].to_vec())
            .collect())
    }

    fn bring_symbols(&mut self) -> Result<(), Error> {
        self.fleet.said[0].expect_symbols();
        self.fleet.order(0, "symbols\n")?;
        let whole = |_, said: &Said| said.symbols.is_none() || said.symbols_whole;
        let progress = |_| Ok::<_, Error>(());
        self.fleet.wait("sending symbols", whole, progress)
    }
}
