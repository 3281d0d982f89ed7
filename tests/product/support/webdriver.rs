//! A Chromium that a test drives as its user would, by the protocol of WebDriver. The driver and the browser end with the value.
//!
//! A few commands of that protocol are JSON over the HTTP client that is here. Crates that speak all of it, `fantoccini` among them,
//! stand on `webdriver`, whose MPL-2.0 is none of the licences of `deny.toml`, and on a second version of a dozen packages.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::https::Client;
use crate::suites::page::browser;

/// Milliseconds that a condition may take on a busy machine before the test gives up. A bound, not an expectation.
const PATIENCE: u64 = 60_000;

pub(crate) struct Browser {
    driver: Child,
    client: Client,
    /// `/session/ID`.
    session: String,
    profile: tempfile::TempDir,
}

impl Browser {
    /// A browser, or none where the machine lacks one or its driver, which is said.
    pub(crate) async fn start() -> Option<Self> {
        let Some(browser) = browser() else {
            testing::skip(testing::Need::Chromium, "there is no chromium on the PATH");
            return None;
        };
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut driver) = command.process_group(0).spawn() else {
            testing::skip(testing::Need::Chromedriver, "there is no chromedriver on the PATH");
            return None;
        };
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut ports = lines.filter_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        // It says so before it listens for anything.
        let port: u16 = ports.next().unwrap();
        let client = Client::plain(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.unwrap();
        let profile = tempfile::tempdir().unwrap();
        let mut started = Self { driver, client, session: String::new(), profile };
        started.open(&which(browser)).await;
        Some(started)
    }

    async fn open(&mut self, browser: &str) {
        let profile = format!("--user-data-dir={}", self.profile.path().display());
        let args =
            ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", &profile];
        let made = self
            .call(
                "/session",
                json!({"capabilities": {"alwaysMatch": {
                    "browserName": "chrome",
                    "timeouts": {"script": PATIENCE},
                    "goog:chromeOptions": {"binary": browser, "args": args},
                    "goog:loggingPrefs": {"browser": "ALL"},
                }}}),
            )
            .await;
        self.session = format!("/session/{}", made["sessionId"].as_str().unwrap());
    }

    /// A command of the protocol, and its value.
    async fn call(&mut self, path: &str, body: Value) -> Value {
        let path = format!("{}{path}", self.session);
        let answered = self.client.post(&path, body.to_string()).await.unwrap();
        let mut answer = answered.json();
        assert!(answered.code.is_success(), "{path}: {answer:#}");
        answer["value"].take()
    }

    pub(crate) async fn go_to(&mut self, url: &str) {
        self.call("/url", json!({"url": url})).await;
    }

    /// What the body of a function answers in the page.
    pub(crate) async fn run(&mut self, body: &str, args: Value) -> Value {
        self.call("/execute/sync", json!({"script": body, "args": args})).await
    }

    /// Waits until an expression is true in the page; answers it.
    pub(crate) async fn until(&mut self, condition: &str) -> Value {
        let script = format!(
            "const done = arguments[0];
             const look = () => {{ const found = {condition}; if (found) done(found); else setTimeout(look, 10); }};
             look();"
        );
        self.call("/execute/async", json!({"script": script, "args": []})).await
    }

    /// Presses keys one after the other, `held` meanwhile. Special ones have their characters of WebDriver.
    pub(crate) async fn press(&mut self, held: &str, keys: &str) {
        let key = |kind: &str, value: char| json!({"type": kind, "value": value.to_string()});
        let mut actions: Vec<Value> = held.chars().map(|held| key("keyDown", held)).collect();
        for one in keys.chars() {
            actions.extend([key("keyDown", one), key("keyUp", one)]);
        }
        actions.extend(held.chars().map(|held| key("keyUp", held)));
        self.call("/actions", json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}))
            .await;
    }

    /// A command of the browser's own protocol.
    pub(crate) async fn tell(&mut self, command: &str, params: Value) -> Value {
        self.call("/goog/cdp/execute", json!({"cmd": command, "params": params})).await
    }

    /// What the console says that is an error.
    pub(crate) async fn errors(&mut self) -> Vec<String> {
        let entries = self.call("/se/log", json!({"type": "browser"})).await;
        let is_error = |entry: &&Value| entry["level"] == "SEVERE";
        entries.as_array().unwrap().iter().filter(is_error).map(ToString::to_string).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser is of the driver's group, and would outlive it.
        let group = format!("-{}", self.driver.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.driver.wait();
    }
}

/// Where a program of the PATH lies.
fn which(program: &str) -> String {
    let paths = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.is_file());
    found.unwrap().display().to_string()
}
