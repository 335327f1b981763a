// SPDX-License-Identifier: MIT OR Apache-2.0
//! The QEMUs of a run and the talk with their guests: started together, waited for together, killed together.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::Error;
use crate::machine::{Machine, Shape};
use crate::options::Options;
use crate::talk::{LINE_BYTES, Said};
use crate::talk::{Report, VmReport};

/// How often the run looks for Ctrl-C, limits and ended processes.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
const LINE_SHOWN: usize = 80;

/// What a reader's thread hands over: which VM, and a line, or nothing when the guest has closed its port.
type Heard = (usize, Option<String>);

/// Guests of one kind.
pub struct Fleet {
    /// By VM.
    pub machines: Vec<Machine>,
    ports: Vec<UnixStream>,
    /// By VM.
    pub said: Vec<Said>,
    started: Vec<Instant>,
    booted: Vec<Option<Duration>>,
    heard: Receiver<Heard>,
    limit: Duration,
    interrupt: Arc<AtomicBool>,
}

impl Fleet {
    /// Starts the QEMUs, whose files lie in `folder`, and returns when all have opened their ports.
    ///
    /// # Errors
    /// When one cannot be started, or has ended.
    pub fn start(
        options: &Options,
        kernel_arguments: &[String],
        folder: &Path,
        initramfs: &Path,
    ) -> Result<Fleet, Error> {
        let shape = Shape {
            programs: &options.programs,
            initramfs,
            vcpus: options.vcpus,
            memory_mib: options.memory_mib,
            features: options.features,
            kernel_arguments,
        };
        let (sender, heard) = mpsc::channel();
        let count = options.vms as usize;
        let mut fleet = Fleet {
            machines: Vec::new(),
            ports: Vec::new(),
            said: vec![Said::of(options.load); count],
            started: Vec::new(),
            booted: vec![None; count],
            heard,
            limit: options.limit,
            interrupt: Arc::clone(&options.interrupt),
        };
        let mut listeners = Vec::new();
        for vm in 0..count {
            let name = format!("linux{vm}");
            let port = folder.join(format!("{name}.port"));
            let listener = UnixListener::bind(&port).map_err(Error::file("making", &port))?;
            fleet.started.push(Instant::now());
            fleet
                .machines
                .push(Machine::start(&shape, &name, folder, &port)?);
            listeners.push(listener);
        }
        for (vm, listener) in listeners.into_iter().enumerate() {
            let port = fleet.connection(vm, &listener)?;
            let read = port
                .try_clone()
                .map_err(Error::system("copying a socket"))?;
            listen(vm, read, sender.clone())?;
            fleet.ports.push(port);
        }
        Ok(fleet)
    }

    /// Waits until QEMU has opened the port.
    fn connection(&mut self, vm: usize, listener: &UnixListener) -> Result<UnixStream, Error> {
        let failed = Error::system("waiting for QEMU to open its port");
        listener.set_nonblocking(true).map_err(&failed)?;
        let begin = Instant::now();
        loop {
            match listener.accept() {
                Ok((port, _)) => {
                    port.set_nonblocking(false).map_err(&failed)?;
                    return Ok(port);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.look("starting")?;
                    if begin.elapsed() > self.limit {
                        return Err(self.too_long(vm, "starting"));
                    }
                    std::thread::sleep(LOOK_INTERVAL / 5);
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Tells a guest's PID 1 what to do.
    ///
    /// # Errors
    /// When its port takes nothing.
    pub fn order(&mut self, vm: usize, order: &str) -> Result<(), Error> {
        self.ports[vm]
            .write_all(order.as_bytes())
            .map_err(Error::system("talking to a guest"))
    }

    /// Takes what the guests say until `done` holds for all (it is asked about a VM's number and what it has said);
    /// `progress` hears for how many it does, at each change.
    ///
    /// # Errors
    /// A guest that failed, ended or took too long, and those of `progress`.
    pub fn wait<E: From<Error>>(
        &mut self,
        doing: &'static str,
        done: impl Fn(usize, &Said) -> bool,
        mut progress: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let begin = Instant::now();
        let mut last = None;
        let mut looked = begin;
        loop {
            let said = self.said.iter().enumerate();
            let count = said.filter(|(vm, said)| done(*vm, said)).count();
            if last.replace(count) != Some(count) {
                progress(count)?;
            }
            if count == self.said.len() {
                return Ok(());
            }
            self.hear(LOOK_INTERVAL, doing)?;
            if looked.elapsed() < LOOK_INTERVAL {
                continue;
            }
            looked = Instant::now();
            self.look(doing)?;
            let mut said = self.said.iter().enumerate();
            let late = said.position(|(vm, said)| !done(vm, said));
            if let Some(vm) = late.filter(|_| begin.elapsed() > self.limit) {
                return Err(self.too_long(vm, doing).into());
            }
        }
    }

    /// Takes what the guests say for so long, and all that they have said before.
    ///
    /// # Errors
    /// A guest that failed or ended, or Ctrl-C.
    pub fn listen_for(&mut self, time: Duration, doing: &'static str) -> Result<(), Error> {
        let begin = Instant::now();
        loop {
            let rest = time.saturating_sub(begin.elapsed());
            let heard = self.hear(rest.min(LOOK_INTERVAL), doing)?;
            if rest.is_zero() && !heard {
                return Ok(());
            }
            self.look(doing)?;
        }
    }

    /// Takes one line, for which it waits so long; whether there was one.
    fn hear(&mut self, time: Duration, doing: &'static str) -> Result<bool, Error> {
        match self.heard.recv_timeout(time) {
            Ok((vm, Some(line))) => self.take(vm, &line).map(|()| true),
            Ok((vm, None)) => Err(self.gone(vm, doing)?),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(false),
        }
    }

    fn take(&mut self, vm: usize, line: &str) -> Result<(), Error> {
        let said = &mut self.said[vm];
        let name = || self.machines[vm].name.clone();
        said.take(line).map_err(|why| Error::Protocol {
            vm: name(),
            line: line.chars().take(LINE_SHOWN).collect(),
            why,
        })?;
        if let Some(message) = &said.failed {
            return Err(Error::Load {
                vm: name(),
                load: said.load.name(),
                message: message.clone(),
            });
        }
        if said.ready_ns.is_some() && self.booted[vm].is_none() {
            self.booted[vm] = Some(self.started[vm].elapsed());
        }
        Ok(())
    }

    /// Ctrl-C and QEMUs that have ended.
    fn look(&mut self, doing: &'static str) -> Result<(), Error> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        for vm in 0..self.machines.len() {
            if self.machines[vm].ended()?.is_some() {
                return Err(self.gone(vm, doing)?);
            }
        }
        Ok(())
    }

    fn too_long(&self, vm: usize, doing: &'static str) -> Error {
        Error::TooLong {
            vm: self.machines[vm].name.clone(),
            doing,
            limit: self.limit,
            console: self.machines[vm].console(),
        }
    }

    /// The error for a VM that ended or whose port was closed.
    fn gone(&mut self, vm: usize, doing: &'static str) -> Result<Error, Error> {
        // The port closes a moment before the process ends.
        for _ in 0..20 {
            if self.machines[vm].ended()?.is_some() {
                break;
            }
            std::thread::sleep(LOOK_INTERVAL / 5);
        }
        let machine = &mut self.machines[vm];
        let status = machine
            .ended()?
            .map_or("its port is closed".to_owned(), |status| status.to_string());
        Ok(Error::Ended {
            vm: machine.name.clone(),
            doing,
            status,
            messages: machine.last_lines(),
        })
    }

    /// Whether each guest is what was asked for.
    ///
    /// # Errors
    /// When a guest's own log names other features or another lock than those asked for.
    pub fn check_features(&self, options: &Options) -> Result<(), Error> {
        for (machine, said) in self.machines.iter().zip(&self.said) {
            options
                .features
                .check_log(&said.log, options.vcpus)
                .and_then(|()| {
                    options
                        .ours
                        .map_or(Ok(()), |ours| ours.check_log(&said.log))
                })
                .map_err(|difference| Error::Features {
                    vm: machine.name.clone(),
                    wanted: options.features.to_string(),
                    difference,
                })?;
        }
        Ok(())
    }

    /// What the first `wanted` runs of each guest brought.
    pub fn report(self, command: String, wanted: usize, window: Duration) -> Report {
        let nanoseconds = |time: Duration| time.as_nanos() as u64;
        let vms = self.machines.iter().zip(self.said).zip(&self.booted);
        let mut symbols = None;
        let vms = vms
            .map(|((machine, said), booted)| {
                symbols = symbols.take().or(said.symbols);
                VmReport {
                    name: machine.name.clone(),
                    process: machine.process(),
                    kernel: said.kernel,
                    boot_ns: booted.map(nanoseconds),
                    guest_boot_ns: said.ready_ns,
                    runs: said.runs.into_iter().take(wanted).collect(),
                }
            })
            .collect();
        Report {
            command,
            window_ns: nanoseconds(window),
            vms,
            symbols,
        }
    }
}

/// Reads a guest's lines in a thread of their own, until its port is closed or a line is too long.
fn listen(vm: usize, port: UnixStream, heard: Sender<Heard>) -> Result<(), Error> {
    let read = move || {
        let mut port = BufReader::new(port);
        let mut line = Vec::new();
        loop {
            line.clear();
            let taken = (&mut port).take(LINE_BYTES).read_until(b'\n', &mut line);
            let whole = taken.is_ok() && line.last() == Some(&b'\n');
            let text = whole.then(|| String::from_utf8_lossy(&line).trim_end().to_owned());
            // Nobody listens any more when the run has ended.
            if heard.send((vm, text)).is_err() || !whole {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name(format!("unspin-linux{vm}"))
        .spawn(read)
        .map(drop)
        .map_err(Error::system("starting a thread"))
}
