// SPDX-License-Identifier: MIT OR Apache-2.0
//! One VM: QEMU's command line, its process, and the end of the guest's console for messages.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::{Error, Features, Programs};

/// How much of a console a message shows.
const CONSOLE_LINES: usize = 15;

/// What the VMs of a run have in common.
pub struct Shape<'a> {
    /// QEMU and the kernel.
    pub programs: &'a Programs,
    /// The guests' initramfs.
    pub initramfs: &'a Path,
    /// vCPUs of each.
    pub vcpus: u32,
    /// Memory of each.
    pub memory_mib: u32,
    /// Their paravirtual features.
    pub features: Features,
    /// Appended to the kernel's command line.
    pub kernel_arguments: &'a [String],
}

/// A running VM; killed when dropped.
pub struct Machine {
    /// As in messages, and QEMU's process name.
    pub name: String,
    child: Child,
    console: PathBuf,
    messages: PathBuf,
}

/// QEMU's arguments but for its program; `port` is the socket on which the guest talks.
pub fn arguments(shape: &Shape, name: &str, port: &Path, console: &Path) -> Vec<OsString> {
    let mut kernel = vec![
        // The serial port is slow, an exit per character: only what is wrong shows on it.
        "console=ttyS0",
        "quiet",
        // A panic ends the machine (-no-reboot).
        "panic=-1",
        // Symbols of one boot name the addresses of every other.
        "nokaslr",
        // Seconds of computing after init has started; nothing of it is measured.
        "cryptomgr.notests=1",
    ];
    kernel.extend(shape.features.kernel_arguments());
    kernel.extend(shape.kernel_arguments.iter().map(String::as_str));
    let words = [
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-monitor",
        "none",
        "-no-reboot",
        "-machine",
        "q35",
        "-accel",
        "kvm",
        "-cpu",
        &shape.features.cpu(),
        "-smp",
        &shape.vcpus.to_string(),
        "-m",
        &shape.memory_mib.to_string(),
        // Processes and threads are told apart by name in /proc; unspin itself finds them through KVM.
        "-name",
        &format!("guest={name},process={name},debug-threads=on"),
        "-append",
        &kernel.join(" "),
        "-device",
        "virtio-serial-pci",
        "-device",
        "virtserialport,chardev=port,name=unspin",
    ];
    let mut arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
    for (option, prefix, path) in [
        ("-kernel", "", shape.programs.kernel()),
        ("-initrd", "", shape.initramfs),
        ("-serial", "file:", console),
        ("-chardev", "socket,id=port,path=", port),
    ] {
        let mut value = OsString::from(prefix);
        value.push(path);
        arguments.extend([option.into(), value]);
    }
    arguments
}

impl Machine {
    /// Starts QEMU, whose files lie in `folder`, where the guest's port is the socket `port`.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub fn start(shape: &Shape, name: &str, folder: &Path, port: &Path) -> Result<Machine, Error> {
        let console = folder.join(format!("{name}.console"));
        let messages = folder.join(format!("{name}.messages"));
        let output =
            std::fs::File::create(&messages).map_err(Error::file("creating", &messages))?;
        let mut line = shape.programs.qemu();
        let program = PathBuf::from(line.remove(0));
        let mut command = Command::new(&program);
        // The loader is what is executed; /proc and ps show what runs.
        command
            .arg0(shape.programs.qemu_program())
            .args(line)
            .args(arguments(shape, name, port, &console))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output);
        unspin_testbed::die_with_starter(&mut command);
        let child = command.spawn().map_err(Error::file("starting", &program))?;
        Ok(Machine {
            name: name.to_owned(),
            child,
            console,
            messages,
        })
    }

    /// QEMU's process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// QEMU's exit status once it has ended; never waits.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child
            .try_wait()
            .map_err(Error::system("waiting for QEMU"))
    }

    /// The end of the guest's console.
    pub fn console(&self) -> String {
        tail(&self.console)
    }

    /// What QEMU wrote, without its warnings, and the end of the guest's console.
    pub fn last_lines(&self) -> String {
        let lines = tail(&self.messages);
        let lines = lines.lines().filter(|line| !line.contains("warning:"));
        let mut text = lines.collect::<Vec<_>>().join("\n");
        text.push('\n');
        text + &self.console()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last lines of a file; empty when it cannot be read.
fn tail(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_names_the_cell() {
        let cache = tempfile::tempdir().expect("a folder");
        for folder in ["linux-guest/current", "kernel/current/vmlinuz"] {
            std::fs::create_dir_all(cache.path().join(folder)).expect("made");
        }
        let shape = Shape {
            programs: &Programs::find(false, cache.path()).expect("there"),
            initramfs: Path::new("/i"),
            vcpus: 4,
            memory_mib: 256,
            features: Features::VEE21,
            kernel_arguments: &["lpj=1".to_owned()],
        };
        let line = arguments(&shape, "linux0", Path::new("/p"), Path::new("/c"));
        let line: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
        let line = line.join("|");
        for part in [
            "-accel|kvm|-cpu|host,kvm-pv-tlb-flush=off,kvm-pv-ipi=off,kvm-pv-sched-yield=off|-smp|4|-m|256|",
            "-append|console=ttyS0 quiet panic=-1 nokaslr cryptomgr.notests=1 nopvspin lpj=1|",
            "guest=linux0,process=linux0,debug-threads=on",
            "-initrd|/i|-serial|file:/c|-chardev|socket,id=port,path=/p",
        ] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }

    #[test]
    fn messages_show_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("console");
        assert_eq!(tail(&path), "");
        let lines: Vec<_> = (0..40).map(|number| number.to_string()).collect();
        std::fs::write(&path, lines.join("\n")).expect("written");
        assert!(tail(&path).starts_with("25\n") && tail(&path).ends_with("\n39"));
    }
}
