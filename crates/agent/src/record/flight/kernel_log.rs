// SPDX-License-Identifier: MIT OR Apache-2.0
//! Soft lockups that the host's own kernel reports, from /dev/kmsg (Documentation/ABI/testing/dev-kmsg, Linux 7.2).
//!
//! A guest's soft lockup is a line in the guest's log: its host sees neither the guest's console nor its log, which are its VMM's
//! and its own; a pvpanic device tells a panic, and no soft lockup without one. So what is found here are lockups of the host.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Longest record that the kernel hands over (kernel/printk/internal.h, PRINTK_MESSAGE_MAX), and more.
const RECORD_BYTES_MAX: usize = 8 << 10;
/// kernel/watchdog.c, watchdog_timer_fn().
const SOFT_LOCKUP: &str = "BUG: soft lockup - CPU#";
/// The facility of the kernel itself; programs that write to /dev/kmsg get another (kernel/printk/printk.c, devkmsg_write()).
const FACILITY_KERNEL: u32 = 0;

/// What the kernel says from now on.
#[derive(Debug)]
pub struct KernelMessages {
    file: File,
}

impl KernelMessages {
    /// Opens /dev/kmsg, or a file like it, at its end.
    ///
    /// # Errors
    /// What the system says: it takes root or CAP_SYSLOG.
    pub fn open(path: &Path) -> io::Result<KernelMessages> {
        let mut file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        file.seek(SeekFrom::End(0))?;
        Ok(KernelMessages { file })
    }

    /// The soft lockups since the last time, in the kernel's words.
    ///
    /// # Errors
    /// What the system says.
    pub fn soft_lockups(&mut self) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        let mut record = [0; RECORD_BYTES_MAX];
        loop {
            match self.file.read(&mut record) {
                Ok(0) => return Ok(found),
                Ok(length) => found.extend(soft_lockup(&record[..length])),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
                // Some were overwritten before they were read: it goes on with the oldest that is there.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// What the kernel says of a soft lockup in a record `priority,number,time,flags;message`; `None`: it is another one.
fn soft_lockup(record: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(record);
    let (head, message) = text.split_once(';')?;
    let priority: u32 = head.split(',').next()?.parse().ok()?;
    if priority >> 3 != FACILITY_KERNEL {
        return None;
    }
    let message = message.lines().next()?;
    let begin = message.find(SOFT_LOCKUP)?;
    Some(message[begin..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_the_kernels_own_words_count() {
        let lockup = "0,1234,98765432,-;watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [CPU 0/KVM:4711]\n SUBSYSTEM=x\n";
        assert_eq!(
            soft_lockup(lockup.as_bytes()).as_deref(),
            Some("BUG: soft lockup - CPU#3 stuck for 22s! [CPU 0/KVM:4711]")
        );
        for other in [
            // Of a program: facility 1.
            "8,1,2,-;watchdog: BUG: soft lockup - CPU#3 stuck for 22s!",
            "6,1,2,-;kvm: a message\n",
            "0,1,2,- BUG: soft lockup - CPU#3",
            "x,1;BUG: soft lockup - CPU#3",
            "",
            ";",
            // What belongs to a record is no message.
            "6,1,2,-;device\n NAME=BUG: soft lockup - CPU#1\n",
        ] {
            assert_eq!(soft_lockup(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn what_was_said_before_is_no_event() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kmsg");
        let line = "0,1,2,-;watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [x:1]\n";
        std::fs::write(&path, line).expect("room");
        let mut messages = KernelMessages::open(&path).expect("a file");
        assert_eq!(messages.soft_lockups().expect("readable"), [""; 0]);
        let mut file = File::options().append(true).open(&path).expect("a file");
        file.write_all(line.as_bytes()).expect("room");
        assert_eq!(messages.soft_lockups().expect("readable").len(), 1);
        assert!(KernelMessages::open(Path::new("/nonexistent")).is_err());
    }
}
