//! `admit play`: what its routes answer, and the page in a real browser.

mod browser;
mod routes;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::https::{Answered, Client};

/// A running `admit play`; ended with the value.
struct Play {
    child: Child,
    address: SocketAddr,
}

impl Play {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.arg("play").args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
        let address = address.unwrap_or_else(|| panic!("it printed {line:?}")).parse().unwrap();
        Self { child, address }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    async fn client(&self) -> Client {
        Client::plain(self.address).await.unwrap()
    }

    /// The modes that the page has.
    async fn modes(&self) -> Vec<Value> {
        let answered = self.client().await.get("/modes").await.unwrap();
        answered.json()["modes"].as_array().unwrap().clone()
    }

    async fn ask(&self, path: &str, mode: &str, fields: &Value) -> Answered {
        let question = json!({"mode": mode, "fields": fields}).to_string();
        self.client().await.post(path, question).await.unwrap()
    }

    /// The answer about texts that a mode has panes for.
    async fn evaluate(&self, mode: &str, fields: Value) -> Value {
        let answered = self.ask("/evaluate", mode, &fields).await;
        assert_eq!(answered.code, 200, "{}", answered.text());
        answered.json()
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The panes of an example, as a question has them.
fn fields(example: &Value) -> Value {
    let pairs = example["fields"].as_array().unwrap().iter();
    Value::Object(pairs.map(|pair| (pair[0].as_str().unwrap().to_owned(), pair[1].clone())).collect())
}
