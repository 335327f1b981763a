// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C: the first asks to stop in order, the second ends the process at once.

use std::sync::{Arc, OnceLock, atomic::AtomicBool};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// A flag that SIGINT and SIGTERM set: the same at every call.
///
/// # Errors
/// When the system refuses a handler.
pub fn flag() -> std::io::Result<Arc<AtomicBool>> {
    if let Some(interrupted) = FLAG.get() {
        return Ok(Arc::clone(interrupted));
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset here, and sets it below.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))?;
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(Arc::clone(FLAG.get_or_init(|| interrupted)))
}
