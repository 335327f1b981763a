// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work beside Python: on a thread of its own, without the interpreter's lock, while Python's signals are looked at.

use std::{
    cell::Cell,
    panic,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use pyo3::{exceptions::PyKeyboardInterrupt, prelude::*};
use unspin_experiment::{Error, Progress, Session, Work};

use crate::error::of_experiment;

/// How often signals are looked at while there is work: what Ctrl-C waits at most, beside some thousand iterations of the lab's loop.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// The first exception that ends the work.
struct Ended {
    exception: Mutex<Option<PyErr>>,
    interrupt: Arc<AtomicBool>,
}

impl Ended {
    fn by(&self, exception: PyErr) {
        if let Ok(mut first) = self.exception.lock() {
            first.get_or_insert(exception);
        }
        self.interrupt.store(true, Ordering::Relaxed);
    }
}

/// Calls a function of Python with the steps done and all steps.
struct Telling<'a> {
    call: Option<&'a Py<PyAny>>,
    steps: Cell<usize>,
    ended: &'a Ended,
}

impl Progress for Telling<'_> {
    fn begin(&self, _: &str, work: Work) {
        if let Work::Steps(steps) | Work::EvenSteps(steps) = work {
            self.steps.set(steps);
        }
    }

    fn done(&self, steps: usize) {
        if let Some(call) = self.call {
            let called = Python::attach(|py| call.call1(py, (steps, self.steps.get())));
            if let Err(exception) = called {
                self.ended.by(exception);
            }
        }
    }
}

/// Does `work` on another thread without the interpreter's lock. A signal, as Ctrl-C, or an exception of `progress` ends it in
/// order, within about a tenth of a second. `file`: see [`of_experiment`].
///
/// # Errors
/// What the signal's handler or `progress` raises, and what comes of the work's own error.
pub fn work<T: Send>(
    py: Python<'_>,
    file: Option<&str>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Session<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let ended = Ended {
        exception: Mutex::new(None),
        interrupt: Arc::clone(&interrupt),
    };
    let result = py.detach(|| {
        thread::scope(|scope| {
            let (alive, over) = mpsc::channel::<()>();
            let ended = &ended;
            let worker = scope.spawn(move || {
                let telling = Telling {
                    call: progress,
                    steps: Cell::new(0),
                    ended,
                };
                let session = Session {
                    progress: &telling,
                    interrupt,
                };
                // Dropped last, also by a panic: whoever waits for signals goes on.
                let _alive = alive;
                work(&session)
            });
            while over.recv_timeout(SIGNALS_EVERY) == Err(RecvTimeoutError::Timeout) {
                if let Err(exception) = Python::attach(|py| py.check_signals()) {
                    ended.by(exception);
                }
            }
            worker.join()
        })
    });
    let first = ended.exception.into_inner().ok().flatten();
    match (first, result) {
        (_, Err(panicked)) => panic::resume_unwind(panicked),
        (Some(exception), _) => Err(exception),
        (None, Ok(Err(Error::Interrupted))) => Err(PyKeyboardInterrupt::new_err(())),
        (None, Ok(result)) => result.map_err(|error| of_experiment(&error, file)),
    }
}
