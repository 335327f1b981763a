// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every query of monitoring/dashboard.json, asked of a real Prometheus that reads `unspin serve`.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/serve.rs"]
#[allow(dead_code, reason = "checks of `serve` itself use the rest")]
mod serve;

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use common::{folder, repository};
use serde_json::Value;
use serve::{Serve, recording};
use unspin_testbed::self_test;

/// Counters that a recording's events do not give (docs/watch.md): what asks for them alone has no answer here.
const NOT_OF_A_RECORDING: [&str; 2] = [
    "unspin_vm_slices_lost_total",
    "unspin_vm_pause_exit_handling_seconds_total",
];

/// A Prometheus, until it is dropped.
struct Prometheus {
    child: Child,
    address: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Prometheus {
    /// One that reads that serve each second, and whose rules are monitoring/alerts.yml.
    fn start(folder: &Path, serve: &str) -> Prometheus {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("bound").to_string();
        drop(free);
        let rules = repository().join("monitoring/alerts.yml");
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{rules:?}]\n\
             scrape_configs: [{{job_name: unspin, static_configs: [{{targets: [{serve:?}]}}]}}]\n"
        );
        let file = folder.join("prometheus.yml");
        fs::write(&file, config).expect("written");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::null())
            .spawn()
            .expect("it is there");
        Prometheus { child, address }
    }

    /// What it answers to a query, or its error.
    fn ask(&self, query: &str) -> Result<Value, String> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut stream = TcpStream::connect(&self.address).map_err(|error| error.to_string())?;
        let request = format!(
            "GET /api/v1/query?query={escaped} HTTP/1.0\r\nHost: {}\r\n\r\n",
            self.address
        );
        stream
            .write_all(request.as_bytes())
            .map_err(|error| error.to_string())?;
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .map_err(|error| error.to_string())?;
        let body = answer.split_once("\r\n\r\n").ok_or("no head")?.1;
        let answer: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        match answer["status"].as_str() {
            Some("success") => Ok(answer["data"]["result"].clone()),
            _ => Err(answer["error"].to_string()),
        }
    }

    /// Until it has read the serve often enough for a rate.
    fn wait_for_rates(&self) {
        let begin = Instant::now();
        let samples = "min(count_over_time(unspin_vm_run_seconds_total[10s])) >= 3";
        while !matches!(self.ask(samples), Ok(Value::Array(series)) if !series.is_empty()) {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "it reads nothing"
            );
            thread::sleep(Duration::from_millis(200));
        }
    }
}

/// The queries of all panels, as Grafana would send them with every variable at "All".
fn queries() -> Vec<String> {
    let file = repository().join("monitoring/dashboard.json");
    let text = fs::read_to_string(file).expect("it is there");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let expressions = targets.map(|target| target["expr"].as_str().expect("a query"));
    let filled = expressions.map(|query| {
        let query = query.replace("$__rate_interval", "10s");
        ["$instance", "$vm", "$job"]
            .iter()
            .fold(query, |query, variable| query.replace(variable, ".*"))
    });
    filled.collect()
}

#[test]
fn every_query_of_the_dashboard_has_an_answer() {
    if Command::new("prometheus")
        .arg("--version")
        .output()
        .is_err()
    {
        self_test::not_tested("Prometheus is not installed (Debian's package prometheus)");
        return;
    }
    let home = folder("");
    let serve = Serve::start(&recording(home.path()), &home.path().join("w.sock"));
    let prometheus = Prometheus::start(home.path(), &serve.address);
    prometheus.wait_for_rates();
    let queries = queries();
    assert!(queries.len() >= 20, "{queries:#?}");
    for query in &queries {
        assert!(!query.contains('$'), "{query}");
        let series = prometheus
            .ask(query)
            .unwrap_or_else(|error| panic!("{query}: {error}"));
        let some = series.as_array().is_some_and(|series| !series.is_empty());
        let lacks = NOT_OF_A_RECORDING.iter().any(|name| query.contains(name));
        let may_be_empty = lacks && !query.contains(" or ");
        assert!(some || may_be_empty, "{query}: no answer");
    }
    let wrong = prometheus.ask("rate(unspin_vm_run_seconds_total)");
    assert!(wrong.is_err(), "what is no query is refused: {wrong:?}");
    assert_eq!(serve.terminate(), Some(0));
}
