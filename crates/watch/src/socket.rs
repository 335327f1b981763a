// SPDX-License-Identifier: MIT OR Apache-2.0
//! A view over a unix socket: whoever connects gets one as JSON, and the connection ends. So `top` needs no rights of its own.

use std::{
    fs, io,
    io::{Read, Write},
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::view::{HostView, VIEW_FORMAT};

/// Where `serve` puts it and `top` looks for it.
pub const SOCKET_PATH: &str = "/run/unspin/watch.sock";
/// How long the other side may take to read, or to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// No view is longer: 500 VMs of 16 vCPUs take 3 MB.
const VIEW_BYTES_MAX: u64 = 256 << 20;

/// Why there is no view.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Nobody answers.
    #[error("{}: no `unspin serve` answers there", path.display())]
    Connect {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The answer broke off.
    #[error("{}: `unspin serve` did not answer in full", path.display())]
    Read {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was said is no view.
    #[error("{}: what answers there is no `unspin serve`", path.display())]
    Nonsense {
        /// Where.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A view of another version.
    #[error("{}: that `unspin serve` is of another version (format {found}, this is {VIEW_FORMAT})", path.display())]
    Format {
        /// Where.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Somebody listens there, or something else is there.
    #[error("{}: {why}", path.display())]
    Taken {
        /// Where.
        path: PathBuf,
        /// What is in the way.
        why: &'static str,
    },
    /// It cannot be made.
    #[error("{}: the socket cannot be made", path.display())]
    Make {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Asks the `serve` that listens there.
///
/// # Errors
/// When nobody listens, or what answers is something else.
pub fn ask(path: &Path) -> Result<HostView, SocketError> {
    let at = || path.to_owned();
    let stream =
        UnixStream::connect(path).map_err(|source| SocketError::Connect { path: at(), source })?;
    let mut answer = String::new();
    stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.take(VIEW_BYTES_MAX).read_to_string(&mut answer))
        .map_err(|source| SocketError::Read { path: at(), source })?;
    let view: HostView = serde_json::from_str(&answer)
        .map_err(|source| SocketError::Nonsense { path: at(), source })?;
    match view.format {
        VIEW_FORMAT => Ok(view),
        found => Err(SocketError::Format { path: at(), found }),
    }
}

/// Answers until it is dropped, which takes the socket away.
pub struct SocketServer {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SocketServer {
    /// Listens at `path`, a new one or one that a dead `serve` has left; every user of the host may ask. Its folder is made if it is not there.
    ///
    /// # Errors
    /// When somebody listens there already, a file is in the way, or it cannot be made.
    pub fn start(
        path: &Path,
        view: impl Fn() -> HostView + Send + 'static,
    ) -> Result<SocketServer, SocketError> {
        take_away_dead(path)?;
        let make = |source| SocketError::Make {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
            fs::create_dir_all(folder).map_err(make)?;
        }
        let listener = UnixListener::bind(path).map_err(make)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).map_err(make)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let serving = move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                match stream {
                    // Whoever hangs up, or does not read, has had its chance.
                    Ok(stream) => drop(answer(stream, &view())),
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        };
        let named = thread::Builder::new().name("unspin-socket".to_owned());
        Ok(SocketServer {
            path: path.to_owned(),
            stop,
            thread: Some(named.spawn(serving).map_err(make)?),
        })
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes it; if nobody can connect any more, it is not there to be waited for.
        let woken = UnixStream::connect(&self.path).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
        // It may be gone already.
        let _ = fs::remove_file(&self.path);
    }
}

fn answer(mut stream: UnixStream, view: &HostView) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let json = serde_json::to_vec(view)?;
    stream.write_all(&json)
}

fn take_away_dead(path: &Path) -> Result<(), SocketError> {
    let taken = |why| SocketError::Taken {
        path: path.to_owned(),
        why,
    };
    let Ok(there) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !there.file_type().is_socket() {
        return Err(taken("something that is no socket is there"));
    }
    if UnixStream::connect(path).is_ok() {
        return Err(taken("another `unspin serve` listens there"));
    }
    fs::remove_file(path).map_err(|source| SocketError::Make {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::VmView;

    fn view() -> HostView {
        HostView {
            format: VIEW_FORMAT,
            time_ns: 7,
            vms: vec![VmView {
                name: "a\"\n".to_owned(),
                ..VmView::default()
            }],
            ..HostView::default()
        }
    }

    #[test]
    fn whoever_asks_gets_the_view_and_the_socket_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/watch.sock");
        let server = SocketServer::start(&path, view).expect("it can be made");
        for _ in 0..3 {
            assert_eq!(ask(&path).expect("an answer"), view());
        }
        let second = SocketServer::start(&path, view).err().expect("taken");
        assert!(second.to_string().contains("another `unspin serve`"));
        drop(server);
        assert!(!path.exists());
        let nobody = ask(&path).expect_err("nobody is there").to_string();
        assert!(nobody.contains("no `unspin serve` answers"), "{nobody}");
    }

    #[test]
    fn a_dead_socket_is_taken_and_a_file_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("watch.sock");
        drop(UnixListener::bind(&path).expect("a socket"));
        drop(SocketServer::start(&path, view).expect("nobody listened"));
        fs::write(&path, "precious").expect("a file");
        let error = SocketServer::start(&path, view).err().expect("in the way");
        assert!(error.to_string().contains("no socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "precious");
    }

    #[test]
    fn strangers_are_told_from_a_serve() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("watch.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let stranger = thread::spawn(move || {
            for said in ["hello", "{\"format\": 99}"] {
                let (mut stream, _) = listener.accept().expect("somebody asks");
                stream.write_all(said.as_bytes()).expect("sent");
            }
        });
        let nonsense = ask(&path).expect_err("nonsense").to_string();
        assert!(nonsense.contains("no `unspin serve`"), "{nonsense}");
        let error = ask(&path).expect_err("another format").to_string();
        assert!(
            error.contains("another version (format 99, this is"),
            "{error}"
        );
        stranger.join().expect("it ends");
    }
}
