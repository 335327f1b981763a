// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics over HTTP/1.1: `/metrics`, `/health`, `/`. One thread; a connection that says nothing for 10 s is closed, and no more than
//! 64 are served at a time.

use std::{
    convert::Infallible,
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, Semaphore};

/// Connections at a time; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 64;
/// For a request's head, and between two requests of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// What is served.
pub trait Pages: Send + Sync + 'static {
    /// The metrics for whoever accepts that, and their content type.
    fn metrics(&self, accept: &str) -> (String, &'static str);
    /// Why not all is well; `None`: it is.
    fn trouble(&self) -> Option<String>;
}

/// Serves until it is dropped.
pub struct HttpServer {
    address: SocketAddr,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Listens there and serves from a thread of its own.
    ///
    /// # Errors
    /// When nobody may listen there, or no thread can be made.
    pub fn start(address: SocketAddr, pages: Arc<dyn Pages>) -> io::Result<HttpServer> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let serving = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = stopped.notified() => {}
                    () = accept(listener, pages) => {}
                }
            });
        };
        let thread = thread::Builder::new()
            .name("unspin-http".to_owned())
            .spawn(serving)?;
        Ok(HttpServer {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there has been told, and ends nothing here.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, pages: Arc<dyn Pages>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, most likely: some become free.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let pages = Arc::clone(&pages);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let response = respond(&request, &*pages);
                async move { Ok::<_, Infallible>(response) }
            });
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(16 << 10)
                .serve_connection(TokioIo::new(stream), service);
            // Whoever hangs up, or talks nonsense, has had its answer.
            let _ = serving.await;
            drop(place);
        });
    }
}

fn respond(request: &Request<Incoming>, pages: &dyn Pages) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = page(
            StatusCode::METHOD_NOT_ALLOWED,
            "GET and HEAD only\n".into(),
            PLAIN,
        );
        let allowed = header::HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(header::ALLOW, allowed);
        return response;
    }
    match request.uri().path() {
        "/metrics" => {
            let accept = request.headers().get_all(header::ACCEPT).iter();
            let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
            let (text, content_type) = pages.metrics(&accept.join(","));
            page(StatusCode::OK, text, content_type)
        }
        "/health" => match pages.trouble() {
            None => page(StatusCode::OK, "ok\n".into(), PLAIN),
            Some(why) => page(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"), PLAIN),
        },
        "/" => page(StatusCode::OK, INDEX.into(), PLAIN),
        _ => page(
            StatusCode::NOT_FOUND,
            format!("no such page\n{INDEX}"),
            PLAIN,
        ),
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";
const INDEX: &str =
    "unspin serve\n/metrics  what VMs run, wait, halt and spin\n/health   ok, or why not\n";

fn page(status: StatusCode, text: String, content_type: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let content_type = header::HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests;
