// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a sweep: `cell-NNNNNN.parquet` for each finished cell, `sweep.parquet` in the end; `hashes.jsonl` beside them.

use std::{
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use anyhow::Context;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use unspin_recording::hashes::{HASHES, Hashes};
use unspin_report::COMMIT;

use super::{
    grid::Grid,
    rows,
    table_file::{self, Metadata, PARTIAL, TableFile},
};
use crate::Error;

/// The file of all cells.
const MERGED: &str = "sweep.parquet";
/// Version of the columns and of where hashes stand.
const VERSION: &str = "2";
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
    hashes: Hashes,
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
    pub fn open(path: &Path, grid: &Grid) -> Result<SweepFolder, Error> {
        let refused = |why: String| Error::Usage(format!("{}: {why}", path.display()));
        fs::create_dir_all(path).map_err(|error| refused(error.to_string()))?;
        let locked = lock(path).map_err(|error| refused(error.to_string()))?;
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            let whole = name.strip_suffix(PARTIAL).unwrap_or(&name);
            let ours = match number(whole) {
                Some(number) => number < grid.cells.len(),
                None => whole == MERGED || whole == HASHES,
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
            hashes: Hashes::read(path).map_err(|error| refused(error.to_string()))?,
            _locked: locked,
        })
    }

    /// What is missing. Every file is read and hashed once.
    ///
    /// # Errors
    /// A file that is damaged, or of another sweep: nothing has run.
    pub fn look(&self, grid: &Grid) -> Result<Found, Error> {
        if self.check(MERGED, &whole_metadata(grid))? {
            return Ok(Found::Complete);
        }
        let mut missing = Vec::new();
        for number in 0..grid.cells.len() {
            if !self.check(&cell(number), &cell_metadata(grid, number))? {
                missing.push(number);
            }
        }
        Ok(Found::Missing(missing))
    }

    /// Whether the file is there; it is whole and says just that.
    fn check(&self, name: &str, expected: &Metadata) -> Result<bool, Error> {
        let path = self.path.join(name);
        if !path.exists() {
            return Ok(false);
        }
        let refused = |why: String| Error::Usage(format!("{}: {why}", path.display()));
        let damaged = |why: String| {
            refused(format!(
                "damaged: {why}; remove it, and what it held is run again"
            ))
        };
        let hash = self.hashes.of(name);
        let file = TableFile::open(&path, hash).map_err(|why| damaged(why.to_string()))?;
        for (key, expected) in expected {
            let found = file.value(key);
            if found.as_ref() != Some(expected) {
                let found = found.unwrap_or_else(|| "none".to_owned());
                return Err(refused(format!(
                    "it is of another sweep: its {key} is {found}, not {expected}; name another folder"
                )));
            }
        }
        match hash {
            Some(_) => Ok(true),
            None => Err(damaged(format!("{HASHES} does not name it"))),
        }
    }

    /// Writes the rows of a finished cell.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn keep(&mut self, grid: &Grid, number: usize, rows: RecordBatch) -> Result<(), Error> {
        let metadata = cell_metadata(grid, number);
        let (folder, hashes, schema) = (&self.path, &mut self.hashes, rows.schema());
        let rows = std::iter::once(Ok(rows));
        let name = cell(number);
        Ok(table_file::write(
            folder, &name, hashes, &metadata, &schema, rows,
        )?)
    }

    /// Puts all cells together, unless that is done, and removes their files. All rows.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn merge(&mut self, grid: &Grid) -> Result<RecordBatch, Error> {
        if !self.merged().exists() {
            let schema = rows::columns(grid);
            let groups = Groups {
                folder: &self.path,
                cells: 0..grid.cells.len(),
                schema: schema.clone(),
            };
            let metadata = whole_metadata(grid);
            table_file::write(
                &self.path,
                MERGED,
                &mut self.hashes,
                &metadata,
                &schema,
                groups,
            )?;
        }
        for number in 0..grid.cells.len() {
            match fs::remove_file(self.path.join(cell(number))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        if self.hashes.len() > 1 {
            self.hashes
                .keep(|file| file == MERGED)
                .map_err(anyhow::Error::from)?;
        }
        Ok(read(&self.merged())?)
    }

    /// The file of all cells.
    pub fn merged(&self) -> PathBuf {
        self.path.join(MERGED)
    }
}

/// The rows of all cells, some cells at a time.
struct Groups<'a> {
    folder: &'a Path,
    cells: std::ops::Range<usize>,
    schema: SchemaRef,
}

impl Iterator for Groups<'_> {
    type Item = anyhow::Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut group, mut rows) = (Vec::new(), 0);
        while rows < GROUP_ROWS {
            let Some(number) = self.cells.next() else {
                break;
            };
            match read(&self.folder.join(cell(number))) {
                Ok(batch) => {
                    rows += batch.num_rows();
                    group.push(batch);
                }
                Err(error) => return Some(Err(error)),
            }
        }
        let whole = (!group.is_empty()).then(|| concat_batches(&self.schema, &group));
        whole.map(|batch| batch.map_err(Into::into))
    }
}

/// A file's rows; it was checked before, or was written by this process.
fn read(path: &Path) -> anyhow::Result<RecordBatch> {
    let read = TableFile::open(path, None).and_then(TableFile::read);
    read.with_context(|| format!("reading {}", path.display()))
}

/// The file of a cell.
fn cell(number: usize) -> String {
    format!("cell-{number:06}.parquet")
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

fn cell_metadata(grid: &Grid, number: usize) -> Metadata {
    let cell = &grid.cells[number].scenario;
    metadata(grid, &cell.hash(), cell.seed)
}

/// Of a file with all cells.
pub fn whole_metadata(grid: &Grid) -> Metadata {
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
        (KEY_GRID, grid.describe().to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}
