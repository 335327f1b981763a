// SPDX-License-Identifier: MIT OR Apache-2.0
//! All entries of a hash map by a few system calls, however many there are (`BPF_MAP_LOOKUP_BATCH`: kernel/bpf/hashtab.c,
//! `__htab_map_lookup_and_delete_batch()`, Linux 5.6 and later).

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    ptr,
};

use libbpf_rs::{MapCore, MapHandle};

use super::{
    bytes::{self, Plain},
    load,
};
use crate::Error;

/// Entries that are read at once, at first: more than any bucket holds but by chance, and half a megabyte of 64-byte values of 128 CPUs.
const ROOM: u32 = 64;

/// Calls `each` with the key and the value of every entry of a hash map; of a map with values for each CPU, once
/// for each possible CPU. An entry that comes or goes meanwhile may be missed; none is seen twice unless it is put in again.
///
/// # Errors
/// When the kernel refuses to read the map, or its keys or values are not of that size.
pub(crate) fn each<K: Plain, V: Plain>(
    map: &MapHandle,
    name: &'static str,
    mut each: impl FnMut(K, V),
) -> Result<(), Error> {
    let refused = |source| load::refused(&format!("reading the BPF map {name}"), source);
    let value_bytes = map.value_size() as usize;
    let copies = match map.map_type().is_percpu() {
        true => libbpf_rs::num_possible_cpus().map_err(refused)?,
        false => 1,
    };
    // The kernel rounds each CPU's value up to 8 bytes.
    let stride = match copies {
        1 => value_bytes,
        _ => value_bytes.next_multiple_of(8),
    };
    let mut batch = Batch::new(map, stride * copies);
    while let Some(found) = batch.next().map_err(|error| refused(error.into()))? {
        for at in 0..found {
            let key = batch.key(at);
            for copy in batch.value(at).chunks_exact(stride) {
                each(
                    bytes::read(name, key)?,
                    bytes::read(name, &copy[..value_bytes])?,
                );
            }
        }
    }
    Ok(())
}

/// Where in the map the reading is.
struct Batch<'map> {
    map: &'map MapHandle,
    /// Of one entry, all CPUs' values.
    value_bytes: usize,
    key_bytes: usize,
    room: u32,
    keys: Vec<u8>,
    values: Vec<u8>,
    /// What the kernel calls a batch: where the next one begins.
    place: Option<u32>,
    is_over: bool,
}

impl Batch<'_> {
    fn new(map: &MapHandle, value_bytes: usize) -> Batch<'_> {
        Batch {
            map,
            value_bytes,
            key_bytes: map.key_size() as usize,
            room: ROOM,
            keys: Vec::new(),
            values: Vec::new(),
            place: None,
            is_over: false,
        }
    }

    /// How many entries were read; `None`: there are no more.
    fn next(&mut self) -> io::Result<Option<usize>> {
        while !self.is_over {
            self.keys.resize(self.room as usize * self.key_bytes, 0);
            self.values.resize(self.room as usize * self.value_bytes, 0);
            let (mut found, mut place) = (self.room, 0u32);
            let from = self.place.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
            // SAFETY: `from` is null or a u32, `place` is one: a hash map's batch (bucket number). Both buffers have room for
            // `found` entries of this map's sizes, the values for each possible CPU.
            let result = unsafe {
                libbpf_sys::bpf_map_lookup_batch(
                    self.map.as_fd().as_raw_fd(),
                    from.cast(),
                    ptr::from_mut(&mut place).cast(),
                    self.keys.as_mut_ptr().cast(),
                    self.values.as_mut_ptr().cast(),
                    &mut found,
                    ptr::null(),
                )
            };
            match -result {
                0 => self.place = Some(place),
                libc::ENOENT => self.is_over = true,
                // A bucket has more than there is room for.
                libc::ENOSPC => {
                    self.room *= 2;
                    continue;
                }
                libc::EINTR => continue,
                error => return Err(io::Error::from_raw_os_error(error)),
            }
            return Ok(Some(found.min(self.room) as usize));
        }
        Ok(None)
    }

    fn key(&self, at: usize) -> &[u8] {
        &self.keys[at * self.key_bytes..][..self.key_bytes]
    }

    fn value(&self, at: usize) -> &[u8] {
        &self.values[at * self.value_bytes..][..self.value_bytes]
    }
}
