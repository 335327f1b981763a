// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench ecs`: what eCS's annotation costs between threads, in the shape of the paper's Table 4.

use std::{
    ffi::{CStr, c_void},
    ptr::NonNull,
    sync::Barrier,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::{clock::ClockSample, error::Error, ffi, latency::median, table::Table};

/// One class of section with one number of threads. Times are of a lock-unlock pair as its thread sees it, medians.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// spinlock, `rwlock_read`, ...
    pub name: &'static str,
    /// Threads that share the lock.
    pub threads: u32,
    /// Without annotation.
    pub off_ns: f64,
    /// With it.
    pub on_ns: f64,
    /// Without it once more: what the two would differ by if it cost nothing.
    pub null_ns: f64,
    /// Median of what a pair of neighbouring runs differ by, with less without.
    pub cost_ns: f64,
    /// The same of the two without.
    pub null_cost_ns: f64,
}

/// What a row's threads share.
struct Shared(NonNull<c_void>);

// SAFETY: the C side takes locks in it, nothing else.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: from driver_ecs_new(); the threads are back.
        unsafe { ffi::driver_ecs_free(self.0.as_ptr()) };
    }
}

/// Measures every row with each number of threads, `repeat` times off, on, off and back.
///
/// # Errors
/// A thread that the system refuses, counters that are not back at 0, an interrupt.
pub fn run(
    threads: &[u32],
    repeat: u32,
    pairs: u32,
    interrupt: &AtomicBool,
) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for &threads in threads {
        for row in 0..ffi::ECS_ROWS {
            rows.push(measure(row, threads, repeat, pairs, interrupt)?);
        }
    }
    Ok(rows)
}

fn measure(
    row: u32,
    threads: u32,
    repeat: u32,
    pairs: u32,
    interrupt: &AtomicBool,
) -> Result<Row, Error> {
    // SAFETY: the row is one; allocates.
    let shared = Shared(NonNull::new(unsafe { ffi::driver_ecs_new(row) }).expect("some memory"));
    let mut times: [Vec<f64>; 3] = Default::default();
    for repetition in 0..repeat {
        if interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let mut order = [0, 1, 2];
        if repetition % 2 == 1 {
            order.reverse();
        }
        for kind in order {
            times[kind].push(pair_ns(row, &shared, kind == 1, threads, pairs)?);
        }
    }
    let of = |kind: usize| median(&times[kind]).expect("repeated at least once");
    let difference = |kind: usize| {
        let pairs = times[kind].iter().zip(&times[0]);
        median(
            &pairs
                .map(|(with, without)| with - without)
                .collect::<Vec<_>>(),
        )
        .expect("repeated at least once")
    };
    Ok(Row {
        // SAFETY: a string literal of ASCII; the row is one.
        name: unsafe { CStr::from_ptr(ffi::driver_ecs_name(row)) }
            .to_str()
            .unwrap_or("?"),
        threads,
        off_ns: of(0),
        on_ns: of(1),
        null_ns: of(2),
        cost_ns: difference(1),
        null_cost_ns: difference(2),
    })
}

/// Mean nanoseconds of a pair, of all threads that begin together.
fn pair_ns(
    row: u32,
    shared: &Shared,
    annotated: bool,
    threads: u32,
    pairs: u32,
) -> Result<f64, Error> {
    let (table, together) = (Table::new(), Barrier::new(threads as usize));
    let clock = ClockSample::now();
    let cycles = thread::scope(|scope| {
        let body = |number: u32| {
            let (table, together) = (&table, &together);
            move || {
                // SAFETY: the table and what is shared outlive the scope; the number is this thread's alone.
                unsafe {
                    ffi::driver_join(table.as_ptr(), number);
                    together.wait();
                    let cycles =
                        ffi::driver_ecs_cycles(row, shared.0.as_ptr(), annotated.into(), pairs);
                    let left_over = ffi::driver_ecs_left_over();
                    ffi::driver_leave();
                    (cycles, left_over)
                }
            }
        };
        let handles: Vec<_> = (0..threads)
            .map(|number| scope.spawn(body(number)))
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().expect("a driver does not panic"))
            .collect::<Vec<_>>()
    });
    // The rate of the clock needs some time between its two looks.
    thread::sleep(std::time::Duration::from_millis(2));
    let rate = clock.cycles_per_ns(ClockSample::now());
    if cycles.iter().any(|(_, left_over)| *left_over != 0) {
        return Err(Error::Unsupported(
            "a counter of eCS is not back at 0 outside of sections",
        ));
    }
    let sum: u64 = cycles.iter().map(|(cycles, _)| cycles).sum();
    Ok(sum as f64 / f64::from(threads) / f64::from(pairs) / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_measured_and_its_counters_come_back() {
        let rows = run(&[1, 3], 3, 2_000, &AtomicBool::new(false)).expect("runs");
        assert_eq!(rows.len(), 2 * ffi::ECS_ROWS as usize);
        for row in &rows {
            assert!(
                row.off_ns > 0.5 && row.on_ns > 0.5 && row.null_ns > 0.5,
                "{row:?}"
            );
        }
        assert_eq!(rows[0].name, "spinlock");
        assert_eq!(rows[6].name, "rcu");
        let stopped = run(&[1], 1, 10, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(Error::Interrupted)));
    }
}
