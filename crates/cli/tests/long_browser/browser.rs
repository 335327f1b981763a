// SPDX-License-Identifier: MIT OR Apache-2.0
//! A browser without a screen, spoken to through pipes (Chromium's `--remote-debugging-pipe`: JSON with a zero byte behind each message,
//! from file 3 and to file 4).

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Names under which Debian installs it, in order.
const NAMES: [&str; 2] = ["chromium-headless-shell", "chromium"];
/// Ends one that hangs; s.
const LIMIT_S: &str = "120";

/// A running browser with one page.
pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: String,
    last: u64,
    /// What was told unasked.
    events: Vec<Value>,
    page: String,
    _folder: TempDir,
}

impl Browser {
    /// Starts the one that is on the PATH, or that UNSPIN_CHROMIUM names; none where there is none.
    pub fn start() -> Option<Browser> {
        let named = std::env::var("UNSPIN_CHROMIUM").ok();
        let mut names = named.iter().map(String::as_str).chain(NAMES);
        let name = names.find(|name| {
            let mut version = Command::new(name);
            let version = version.arg("--version").stderr(Stdio::null()).output();
            version.is_ok_and(|version| version.status.success())
        })?;
        let folder = tempfile::tempdir().expect("a folder");
        let [to, from] = ["to", "from"].map(|pipe| folder.path().join(pipe));
        let made = Command::new("mkfifo").args([&to, &from]).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        // Without Chromium's own sandbox, which root has none of: it opens pages that were just written here.
        let child = Command::new("sh")
            .args(["-c", "exec timeout \"$1\" \"$0\" --headless --no-sandbox --disable-gpu --remote-debugging-pipe --user-data-dir=\"$2\" 3<\"$3\" 4>\"$4\""])
            .args([name, LIMIT_S])
            .args([&folder.path().join("profile"), &to, &from])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh");
        // In the order in which the shell opens its ends.
        let to = OpenOptions::new().write(true).open(to).expect("a pipe");
        let from = BufReader::new(File::open(from).expect("a pipe"));
        let mut browser = Browser {
            child,
            to,
            from,
            session: String::new(),
            last: 0,
            events: Vec::new(),
            page: String::new(),
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Opens a file, and waits until its scripts have run.
    pub fn open(&mut self, page: &Path) {
        self.page = format!("file://{}", page.display());
        self.call("Page.navigate", json!({"url": self.page}));
        let is_loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(is_loaded) {
            let message = self.message();
            self.events.push(message);
        }
    }

    /// Asks for something; what it answers.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let text = format!("{message}\0");
        self.to
            .write_all(text.as_bytes())
            .expect("the browser listens");
        loop {
            let message = self.message();
            if message["id"] == self.last {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn message(&mut self) -> Value {
        let mut text = Vec::new();
        self.from
            .read_until(0, &mut text)
            .expect("the browser's pipe");
        assert!(!text.is_empty(), "the browser has ended");
        text.pop();
        serde_json::from_slice(&text).expect("JSON")
    }

    /// What an expression of the page's script is.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Presses a key and lets it go.
    pub fn key(&mut self, name: &str) {
        let code = match name {
            "Tab" => 9,
            "Enter" => 13,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => panic!("{name}: a key without a number"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event =
                json!({"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code});
            if (kind, name) == ("keyDown", "Enter") {
                event["text"] = json!("\r");
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Fails when a script has failed, something was refused or reported, or anything but the page was asked for.
    #[track_caller]
    pub fn nothing_went_wrong(&self) {
        for event in &self.events {
            let (method, of) = (&event["method"], &event["params"]);
            assert!(
                method != "Runtime.exceptionThrown" && method != "Log.entryAdded",
                "{event}"
            );
            if method == "Network.requestWillBeSent" {
                let asked = of["request"]["url"].as_str().unwrap_or_default();
                assert_eq!(asked.split('#').next(), Some(self.page.as_str()));
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its own children end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
