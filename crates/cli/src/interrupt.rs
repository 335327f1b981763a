// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C: the first asks to stop in order, the second ends the process at once.

use std::sync::{Arc, atomic::AtomicBool};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};

/// A flag that SIGINT and SIGTERM set. Call once per command.
///
/// # Errors
/// When the system refuses a handler.
pub fn flag() -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset here, and sets it below.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))?;
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}
