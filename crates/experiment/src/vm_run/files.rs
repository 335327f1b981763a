// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run leaves in files: its event log, opened before the run, so that a path that cannot be written is told at once, and
//! whole or absent after it; and the guests' own logs, apart from everything that the host saw.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use unspin_events::{
    guest_log::{GuestLog, GuestLogVm},
    log::{EventLog, Metadata},
};
use unspin_vmm::VmReport;

use super::{Run, ground_truth};
use crate::Error;

/// A log that is being written; dropped unfinished, it leaves nothing behind.
pub struct EventFile {
    path: PathBuf,
    partial: Option<PathBuf>,
    file: File,
}

impl EventFile {
    /// Opens `path` for a log; what is there stays until [`EventFile::finish`].
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> anyhow::Result<EventFile> {
        // A device or a pipe is written as it is; a file appears under its name when it is whole.
        let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let partial = (!special).then(|| {
            let mut name = path.as_os_str().to_owned();
            name.push(".partial");
            PathBuf::from(name)
        });
        let target = partial.as_deref().unwrap_or(path);
        let options = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(target);
        let file = options
            .with_context(|| format!("{}: the event log cannot be written", path.display()))?;
        Ok(EventFile {
            path: path.to_owned(),
            partial,
            file,
        })
    }

    /// Writes the log and gives the file its name.
    ///
    /// # Errors
    /// When the disk is full, say; then nothing is left behind.
    pub fn finish(
        mut self,
        metadata: Metadata,
        events: &[unspin_events::Event],
    ) -> anyhow::Result<()> {
        let failed = || format!("{}: the event log cannot be written", self.path.display());
        let log = EventLog::new(metadata, events.to_vec());
        let mut out = BufWriter::new(&self.file);
        log.write(&mut out).with_context(failed)?;
        out.flush().with_context(failed)?;
        drop(out);
        if let Some(partial) = &self.partial {
            fs::rename(partial, &self.path).with_context(failed)?;
        }
        self.partial = None;
        Ok(())
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // Half a log is worse than none; that it cannot be removed changes nothing.
            let _ = fs::remove_file(partial);
        }
    }
}

/// Writes the logs of all VMs that were observed.
///
/// # Errors
/// When the run was not observed, or the file cannot be written.
pub fn write(path: &Path, run: &Run) -> Result<(), Error> {
    let failed = || format!("{}: the guest log cannot be written", path.display());
    let log = collect(run)?;
    let mut out = BufWriter::new(File::create(path).with_context(failed)?);
    log.write(&mut out).with_context(failed)?;
    out.flush().with_context(failed)?;
    Ok(())
}

fn collect(run: &Run) -> Result<GuestLog, Error> {
    let clock = &run.report.clock;
    let vms = run.report.vms.iter();
    let vms = vms.filter_map(|vm| of_vm(run, vm)).collect();
    Ok(GuestLog::new([clock.first(), clock.last()], vms))
}

/// `None` when the host saw nothing of it.
fn of_vm(run: &Run, vm: &VmReport) -> Option<GuestLogVm> {
    let seen = run.seen.as_ref()?;
    let thread = |thread| seen.of_thread(thread);
    let number = vm.vcpus.iter().find_map(|vcpu| thread(vcpu.thread_id))?.vm;
    let (waits, refused) = ground_truth::waits(vm);
    let group = run.scenario.vms.get(vm.group)?;
    let dropped = vm.vcpus.iter().any(|vcpu| vcpu.statistics.log_dropped > 0);
    Some(GuestLogVm {
        vm: number,
        name: vm.name.clone(),
        lock: group.lock.name().to_owned(),
        vcpus: vm.vcpus.len() as u16,
        complete: group.log_minimum_spins == 0 && !dropped,
        refused,
        waits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_or_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let names = || fs::read_dir(folder.path()).expect("the folder").count();
        drop(EventFile::create(&path).expect("writable"));
        assert_eq!(names(), 0);
        let file = EventFile::create(&path).expect("writable");
        assert!(!path.exists());
        file.finish(Metadata::default(), &[]).expect("written");
        assert_eq!(names(), 1);
        let bytes = fs::read(&path).expect("the log");
        let read = EventLog::read(&mut bytes.as_slice()).expect("a log");
        assert_eq!(read.truncated, None);
    }

    #[test]
    fn what_cannot_be_written_is_told_at_once() {
        let error = EventFile::create(Path::new("/nonexistent/log"))
            .err()
            .expect("refused");
        assert!(
            format!("{error:#}")
                .contains("/nonexistent/log: the event log cannot be written: No such file")
        );
        let full = EventFile::create(Path::new("/dev/full")).expect("a device");
        assert!(full.finish(Metadata::default(), &[]).is_err());
    }
}
