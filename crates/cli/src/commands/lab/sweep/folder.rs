// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a sweep: `cell-NNNNNN.parquet` for each finished cell, `sweep.parquet` in the end.

use std::{
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use anyhow::Context;
use unspin_report::COMMIT;

use crate::{
    commands::lab::sweep::{
        grid::Grid,
        rows as lab_sweep_rows,
        table_file::{self as table_file, Metadata, PARTIAL, TableColumn},
    },
    terminal::failure::Failure,
};

/// The file of all cells.
const MERGED: &str = "sweep.parquet";
/// Version of the columns.
const VERSION: &str = "1";
/// Rows of a row group of the merged file.
const GROUP_ROWS: usize = 65_536;

const KEY_VERSION: &str = "unspin.sweep_version";
const KEY_COMMIT: &str = "unspin.commit";
const KEY_SCENARIO: &str = "unspin.scenario_sha256";
const KEY_SEED: &str = "unspin.seed";
const KEY_GRID: &str = "unspin.grid";
const KEY_TEXT: &str = "unspin.scenario";

/// The folder, which is this process's as long as this lives.
pub struct SweepFolder {
    path: PathBuf,
    _locked: File,
}

/// What stands in it.
pub enum Found {
    /// All cells, put together.
    Complete,
    /// Nothing of these cells.
    Missing(Vec<usize>),
}

impl SweepFolder {
    /// A new or empty folder, or one of the same sweep. Removes what a kill left unfinished.
    ///
    /// # Errors
    /// A folder that holds anything else, or that another process is at: nothing has run.
    pub fn open(path: &Path, grid: &Grid) -> Result<SweepFolder, Failure> {
        let refused = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
        fs::create_dir_all(path).map_err(|error| refused(error.to_string()))?;
        let locked = lock(path).map_err(|error| refused(error.to_string()))?;
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            let whole = name.strip_suffix(PARTIAL).unwrap_or(&name);
            let ours = match number(whole) {
                Some(number) => number < grid.cells.len(),
                None => whole == MERGED,
            };
            if !ours {
                return Err(refused(format!(
                    "`{name}` is none of the {} cells of this sweep; name another folder",
                    grid.cells.len()
                )));
            }
            if whole != name {
                fs::remove_file(path.join(&*name))?;
            }
        }
        Ok(SweepFolder {
            path: path.to_owned(),
            _locked: locked,
        })
    }

    /// What is missing. Every file is read and hashed once.
    ///
    /// # Errors
    /// A file that is damaged, or of another sweep: nothing has run.
    pub fn look(&self, grid: &Grid) -> Result<Found, Failure> {
        let merged = self.merged();
        if check(&merged, &whole_metadata(grid))? {
            return Ok(Found::Complete);
        }
        let mut missing = Vec::new();
        for number in 0..grid.cells.len() {
            if !check(&self.cell(number), &cell_metadata(grid, number))? {
                missing.push(number);
            }
        }
        Ok(Found::Missing(missing))
    }

    /// Writes the rows of a finished cell.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn keep(&self, grid: &Grid, number: usize, rows: &[TableColumn]) -> Result<(), Failure> {
        let metadata = cell_metadata(grid, number);
        let path = self.cell(number);
        Ok(table_file::write(&path, &metadata, rows, |file| {
            file.rows(rows)
        })?)
    }

    /// Puts all cells together, unless that is done, removes their files, and shows each row group. How many rows.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn merge(
        &self,
        grid: &Grid,
        mut show: impl FnMut(&[TableColumn]),
    ) -> Result<usize, Failure> {
        let path = self.merged();
        let mut rows = 0;
        if !path.exists() {
            let empty = lab_sweep_rows::columns(grid);
            table_file::write(&path, &whole_metadata(grid), &empty, |file| {
                let mut group = empty.clone();
                for number in 0..grid.cells.len() {
                    let cell = self.cell(number);
                    let read = table_file::open(&cell).and_then(|reader| table_file::read(&reader));
                    let read = read.with_context(|| format!("reading {}", cell.display()))?;
                    for (all, more) in group.iter_mut().zip(read) {
                        all.values.append(more.values)?;
                    }
                    let full = group[0].values.len() >= GROUP_ROWS;
                    if full || number + 1 == grid.cells.len() {
                        file.rows(&group)?;
                        group = empty.clone();
                    }
                }
                Ok(())
            })?;
        }
        for number in 0..grid.cells.len() {
            match fs::remove_file(self.cell(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        let read = table_file::open(&path).and_then(|reader| table_file::read(&reader));
        let read = read.with_context(|| format!("reading {}", path.display()))?;
        rows += read.first().map_or(0, |column| column.values.len());
        show(&read);
        Ok(rows)
    }

    /// The file of all cells.
    pub fn merged(&self) -> PathBuf {
        self.path.join(MERGED)
    }

    fn cell(&self, number: usize) -> PathBuf {
        self.path.join(format!("cell-{number:06}.parquet"))
    }
}

/// `cell-000007.parquet`: 7.
fn number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("cell-")?.strip_suffix(".parquet")?;
    let only = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    only.then(|| digits.parse().ok()).flatten()
}

/// The folder for this process alone.
fn lock(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    // SAFETY: a descriptor that is open.
    if unsafe { libc::flock(folder.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(folder);
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock => Err(io::Error::other("another sweep is at work there")),
        _ => Err(error),
    }
}

/// Whether the file is there; it is whole and says just that.
fn check(path: &Path, expected: &Metadata) -> Result<bool, Failure> {
    if !path.exists() {
        return Ok(false);
    }
    let refused = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    let reader = table_file::open(path).map_err(|why| {
        refused(format!(
            "damaged: {why}; remove it, and what it held is run again"
        ))
    })?;
    for (key, expected) in expected {
        let found = table_file::value(&reader, key);
        if found.as_ref() != Some(expected) {
            let found = found.unwrap_or_else(|| "none".to_owned());
            return Err(refused(format!(
                "it is of another sweep: its {key} is {found}, not {expected}; name another folder"
            )));
        }
    }
    Ok(true)
}

fn cell_metadata(grid: &Grid, number: usize) -> Metadata {
    let cell = &grid.cells[number].scenario;
    metadata(grid, &cell.hash(), cell.seed)
}

fn whole_metadata(grid: &Grid) -> Metadata {
    let mut all = metadata(grid, &grid.base.hash(), grid.base.seed);
    all.push((KEY_TEXT.to_owned(), grid.base.to_toml()));
    all
}

fn metadata(grid: &Grid, hash: &str, seed: u64) -> Metadata {
    [
        (KEY_VERSION, VERSION.to_owned()),
        (KEY_COMMIT, COMMIT.to_owned()),
        (KEY_SCENARIO, hash.to_owned()),
        (KEY_SEED, seed.to_string()),
        (KEY_GRID, grid.describe()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}
