// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest-statistics.json`: what guests measured themselves, beside a recording of a run whose VMs were this program's
//! own. Only Friebel's histograms read it; whoever judges by what the host saw (`explain`) must not.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::{Error, names, schema::SCHEMA_VERSION};

const FILE: &str = "guest-statistics.json";
/// A hundred VMs take some 200 kB.
const BYTES_MAX: u64 = 16 << 20;

/// Every VM of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GuestStatistics {
    /// As in `recording.json`.
    pub schema_version: u32,
    /// TSC ticks per second: the unit of histograms.
    pub tsc_hz: u64,
    /// By number in the scenario.
    pub vms: Vec<GuestVm>,
}

/// One VM, in the window after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GuestVm {
    /// Its name in the scenario's tables.
    pub name: String,
    /// Its number in the events; `None`: the recording did not see it.
    pub vm: Option<u32>,
    /// CPU time of its vCPU threads, nanoseconds.
    pub cpu_ns: f64,
    /// Of it, in waits for locks and for answers; `None` where KVM has no steal time.
    pub spinning_ns: Option<f64>,
    /// Waits for locks by length, on a CPU or off it: how many, by power of two of TSC ticks.
    pub lock_wait_count: Vec<u64>,
    /// Their sums, TSC ticks.
    pub lock_wait_sum_cycles: Vec<u64>,
}

impl GuestStatistics {
    /// Writes the file into the recording's folder, whole or not at all.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(FILE);
        let partial = names::partial(&path);
        let text = serde_json::to_vec(self).map_err(|error| Error::broken(&path, error))?;
        fs::write(&partial, text)
            .and_then(|()| fs::rename(&partial, &path))
            .map_err(|source| {
                // It is told why; a rest that cannot be removed is never read.
                let _ = fs::remove_file(&partial);
                Error::io(&path, "writing")(source)
            })
    }

    /// `Ok(None)`: the recording has none.
    ///
    /// # Errors
    /// A file that is damaged or of another version.
    pub fn read(folder: &Path) -> Result<Option<GuestStatistics>, Error> {
        let path = folder.join(FILE);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&path, "opening")(error)),
        };
        let mut text = Vec::new();
        file.take(BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(Error::io(&path, "reading"))?;
        let found: GuestStatistics =
            serde_json::from_slice(&text).map_err(|error| Error::broken(&path, error))?;
        if found.schema_version != SCHEMA_VERSION {
            return Err(Error::Version {
                path,
                what: "schema",
                found: found.schema_version.to_string(),
                reads: SCHEMA_VERSION,
            });
        }
        let fits =
            |vm: &GuestVm| vm.lock_wait_count.len() == 64 && vm.lock_wait_sum_cycles.len() == 64;
        if found.tsc_hz == 0 || !found.vms.iter().all(fits) {
            return Err(Error::broken(
                &path,
                "no clock, or histograms of other than 64 buckets",
            ));
        }
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics() -> GuestStatistics {
        GuestStatistics {
            schema_version: SCHEMA_VERSION,
            tsc_hz: 1_000_000_000,
            vms: vec![GuestVm {
                name: "vm0".into(),
                vm: Some(3),
                cpu_ns: 1.5e9,
                spinning_ns: None,
                lock_wait_count: vec![7; 64],
                lock_wait_sum_cycles: vec![8; 64],
            }],
        }
    }

    #[test]
    fn whole_or_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = || GuestStatistics::read(folder.path());
        assert_eq!(read().expect("none"), None);
        statistics().write(folder.path()).expect("room");
        assert_eq!(read().expect("whole"), Some(statistics()));
        let path = folder.path().join(FILE);
        let text = fs::read(&path).expect("there");
        for length in 0..text.len() {
            fs::write(&path, &text[..length]).expect("room");
            assert!(read().is_err(), "cut at {length}");
        }
        let mut short = statistics();
        short.vms[0].lock_wait_count.pop();
        short.write(folder.path()).expect("room");
        assert!(read().is_err());
        let newer = GuestStatistics {
            schema_version: SCHEMA_VERSION + 1,
            ..statistics()
        };
        newer.write(folder.path()).expect("room");
        assert!(matches!(read(), Err(Error::Version { .. })));
    }
}
