// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first parallel port, driven without interrupts: each byte is put into the data register and strobed (IEEE 1284,
//! compatibility mode). The emulator takes it at once, so there is nothing to wait for.

use std::arch::asm;

use crate::channel::printer::Port;

const DATA: u16 = 0x378;
const CONTROL: u16 = DATA + 2;
/// The printer is selected and not being reset.
const IDLE: u8 = 0x0c;
const STROBE: u8 = IDLE | 1;

/// The port, opened for this process.
pub struct ParallelPort(());

impl ParallelPort {
    /// Asks the kernel for the port's registers. Needs CAP_SYS_RAWIO.
    ///
    /// # Errors
    /// What `ioperm` says.
    pub fn open() -> std::io::Result<Self> {
        // SAFETY: three integers; no memory is touched.
        let result = unsafe { libc::syscall(libc::SYS_ioperm, u64::from(DATA), 3_u64, 1) };
        if result < 0 {
            return Err(std::io::Error::last_os_error());
        }
        let port = Self(());
        port.put(CONTROL, IDLE);
        Ok(port)
    }

    fn put(&self, register: u16, value: u8) {
        // SAFETY: `open` has given this process the registers; the instruction touches no memory.
        unsafe {
            asm!("out dx, al", in("dx") register, in("al") value, options(nomem, nostack, preserves_flags));
        }
    }
}

impl Port for ParallelPort {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.put(DATA, byte);
            self.put(CONTROL, STROBE);
            self.put(CONTROL, IDLE);
        }
    }
}
