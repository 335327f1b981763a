// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes wrong goes wrong in a way that is seen.

use std::time::{Duration, SystemTime};

use libtest_mimic::Failed;
use unspin_testbed::{Options, boot_record, run_with};

use crate::{command, options, refused};

pub fn a_panic_is_tried_again_and_shown() -> Result<(), Failed> {
    let before = SystemTime::now();
    let options = own_record()?;
    let (error, stdout, stderr) = refused(&options.1, &["panic"])?;
    let message = error.to_string();
    assert!(
        message.contains("panicked or reset (sysrq triggered crash), in attempt 2 of 2"),
        "{message}"
    );
    assert!(
        stderr.contains("trying once more") && stderr.contains("Kernel panic - not syncing"),
        "{stderr}"
    );
    assert!(stdout.is_empty());
    let record = boot_record(&options.1.cache, before - Duration::from_secs(1))?;
    assert_eq!(
        (record.boots, record.failures, record.too_many()),
        (2, 2, true)
    );
    // Once output has been passed on, a second attempt would repeat it.
    let (error, stdout, stderr) = refused(&options.1, &["speak-and-panic"])?;
    assert!(
        error
            .to_string()
            .contains("in attempt 1 of 2; not tried again because output"),
        "{error}"
    );
    assert_eq!(stdout, b"spoken\n");
    assert!(!stderr.contains("trying once more"), "{stderr}");
    Ok(())
}

/// A cache of its own, so that failures made on purpose do not count as the machine's.
fn own_record() -> Result<(tempfile::TempDir, Options), Failed> {
    let mut options = options()?;
    let folder = tempfile::tempdir()?;
    for part in ["kernel", "qemu"] {
        std::os::unix::fs::symlink(
            options.cache.join(part).canonicalize()?,
            folder.path().join(part),
        )?;
    }
    options.cache = folder.path().into();
    Ok((folder, options))
}

pub fn a_command_over_its_limit_is_ended() -> Result<(), Failed> {
    let (_folder, mut options) = own_record()?;
    options.time_limit = Duration::from_secs(30);
    options.echo_console = false;
    let (error, stdout, _) = refused(&options, &["speak-and-sleep"])?;
    assert!(
        error
            .to_string()
            .contains("did not end within its limit of 30s"),
        "{error}"
    );
    assert_eq!(stdout, b"spoken\n");
    options.boot_limit = Some(Duration::from_millis(300));
    let (error, _, stderr) = refused(&options, &["speak-and-sleep"])?;
    assert!(
        error
            .to_string()
            .contains("did not reach its init within 300ms, in attempt 2 of 2"),
        "{error}"
    );
    assert!(stderr.contains("trying once more"), "{stderr}");
    Ok(())
}

/// What the next test kills.
pub fn run_until_killed() -> ! {
    let result = options().map(|options| {
        run_with(
            &options,
            &command(&["speak-and-sleep"]),
            &mut std::io::stdout(),
            &mut std::io::stderr(),
        )
    });
    panic!("nobody killed it: {result:?}")
}

pub fn the_emulator_ends_with_its_owner() -> Result<(), Failed> {
    let mut owner = std::process::Command::new(std::env::current_exe()?);
    let mut owner = owner
        .arg("run-until-killed")
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let mut spoken = [0; 7];
    std::io::Read::read_exact(owner.stdout.as_mut().expect("piped"), &mut spoken)?;
    assert_eq!(&spoken, b"spoken\n");
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", owner.id()))?;
    let emulator = format!("/proc/{}", children.trim());
    assert!(std::fs::read_to_string(format!("{emulator}/comm"))?.starts_with("qemu"));
    owner.kill()?; // SIGKILL: it cannot clean up.
    owner.wait()?;
    for _ in 0..100 {
        // Whoever inherits the dead emulator may take a while to reap it.
        match std::fs::read_to_string(format!("{emulator}/stat")) {
            Ok(stat) if !stat.contains(") Z ") => std::thread::sleep(Duration::from_millis(50)),
            _ => return Ok(()),
        }
    }
    Err(format!("{emulator} still runs").into())
}

pub fn more_output_than_fits_is_an_error() -> Result<(), Failed> {
    let (error, stdout, _) = refused(&options()?, &["flood", "280"])?;
    assert!(
        error
            .to_string()
            .contains("more than the testbed's output area holds (256 MiB"),
        "{error}"
    );
    assert!(stdout.len() > 200 << 20, "{} bytes had room", stdout.len());
    assert!(stdout.iter().all(|&byte| byte == b'x'));
    Ok(())
}
