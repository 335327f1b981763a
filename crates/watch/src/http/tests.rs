// SPDX-License-Identifier: MIT OR Apache-2.0
use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Mutex,
};

use super::*;

struct Fixed(Mutex<Option<String>>);

impl Pages for Fixed {
    fn metrics(&self, accept: &str) -> (String, &'static str) {
        (format!("accepted {accept}\n"), PLAIN)
    }

    fn trouble(&self) -> Option<String> {
        self.0.lock().expect("one thread").clone()
    }
}

fn server(trouble: Option<&str>) -> HttpServer {
    let pages = Fixed(Mutex::new(trouble.map(str::to_owned)));
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    HttpServer::start(anywhere, Arc::new(pages)).expect("a free port")
}

fn ask(server: &HttpServer, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).expect("it listens");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

fn get(server: &HttpServer, path: &str) -> String {
    ask(
        server,
        &format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nAccept: one\r\nAccept: two\r\nConnection: close\r\n\r\n"
        ),
    )
}

#[test]
fn pages_have_their_paths() {
    let server = server(None);
    let metrics = get(&server, "/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    assert!(metrics.ends_with("accepted one,two\n"), "{metrics}");
    assert!(get(&server, "/health").ends_with("\r\n\r\nok\n"));
    assert!(get(&server, "/").contains("/metrics"));
    assert!(get(&server, "/nothing").starts_with("HTTP/1.1 404 "));
}

#[test]
fn trouble_is_said() {
    let health = get(&server(Some("KVM is not loaded")), "/health");
    assert!(health.starts_with("HTTP/1.1 503 "), "{health}");
    assert!(health.ends_with("KVM is not loaded\n"), "{health}");
}

#[test]
fn nothing_can_be_written_and_nonsense_is_refused() {
    let server = server(None);
    let posted = ask(
        &server,
        "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    assert!(posted.starts_with("HTTP/1.1 405 "), "{posted}");
    assert!(posted.contains("allow: GET, HEAD"), "{posted}");
    assert!(ask(&server, "\0\0 nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(200_000));
    let mut stream = TcpStream::connect(server.address()).expect("it listens");
    // It may hang up before all of it is sent.
    let _ = stream.write_all(long.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}

#[test]
fn silent_connections_do_not_keep_others_out_and_it_ends_with_them() {
    let server = server(None);
    let silent: Vec<TcpStream> = (0..CONNECTIONS_MAX - 1)
        .map(|_| TcpStream::connect(server.address()).expect("it listens"))
        .collect();
    assert!(get(&server, "/health").ends_with("ok\n"));
    let began = std::time::Instant::now();
    drop(server);
    assert!(began.elapsed() < HEAD_TIMEOUT / 2);
    drop(silent);
}
