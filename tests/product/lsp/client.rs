//! An editor: it speaks to the server over a connection in memory, and keeps what it is told without asking.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use admit::cli::Exit;
use admit::cli::lsp::{LspOptions, serve};
use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

/// How long an answer may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Client {
    pub(super) connection: Connection,
    pub(super) server: JoinHandle<Exit>,
    asked: i32,
    /// What the server told without being asked.
    pub(super) told: Vec<Notification>,
}

impl Client {
    pub(super) fn start(params: Value) -> (Self, Value) {
        let (theirs, connection) = Connection::memory();
        let server = thread::spawn(move || serve(theirs, LspOptions::default()));
        let mut client = Self { connection, server, asked: 0, told: Vec::new() };
        let initialized = client.ask("initialize", params).unwrap();
        client.tell("initialized", json!({}));
        (client, initialized)
    }

    pub(super) fn tell(&self, method: &str, params: Value) {
        let told = Notification::new(method.to_owned(), params);
        self.connection.sender.send(told.into()).unwrap();
    }

    pub(super) fn begin(&mut self, method: &str, params: Value) -> RequestId {
        self.asked += 1;
        let id = RequestId::from(self.asked);
        let request = Request::new(id.clone(), method.to_owned(), params);
        self.connection.sender.send(request.into()).unwrap();
        id
    }

    pub(super) fn ask(&mut self, method: &str, params: Value) -> Result<Value, (i32, String)> {
        let id = self.begin(method, params);
        self.answer(&id)
    }

    pub(super) fn answer(&mut self, id: &RequestId) -> Result<Value, (i32, String)> {
        loop {
            match self.next() {
                Message::Response(Response { id: of, response_result, .. }) if of == *id => {
                    return response_result.map_err(|error| (error.code, error.message));
                }
                Message::Notification(told) => self.told.push(told),
                other => panic!("{other:?}"),
            }
        }
    }

    pub(super) fn next(&self) -> Message {
        self.connection.receiver.recv_timeout(PATIENCE).unwrap()
    }

    pub(super) fn open(&self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "yaml", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
    }

    pub(super) fn change(&self, uri: &str, version: i32, changes: &Value) {
        let document = json!({"uri": uri, "version": version});
        self.tell("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
    }

    /// The mistakes of a version of a document.
    pub(super) fn diagnostics(&mut self, uri: &str, version: i32) -> Vec<Value> {
        let is_it = |told: &Notification| {
            told.method == "textDocument/publishDiagnostics"
                && told.params["uri"] == uri
                && told.params["version"] == version
        };
        loop {
            if let Some(at) = self.told.iter().position(is_it) {
                return self.told.remove(at).params["diagnostics"].as_array().unwrap().clone();
            }
            match self.next() {
                Message::Notification(told) => self.told.push(told),
                other => panic!("{other:?}"),
            }
        }
    }

    pub(super) fn end(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Ok(Value::Null));
        let (code, _) = self.ask("textDocument/hover", json!({})).unwrap_err();
        assert_eq!(code, -32_600, "nothing is answered behind it");
        self.tell("exit", Value::Null);
        assert_eq!(self.server.join().unwrap(), Exit::Expected);
    }
}

pub(super) fn at(uri: &str, line: u32, character: u32) -> Value {
    json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}})
}

pub(super) fn range(line: u32, start: u32, end: u32) -> Value {
    json!({"start": {"line": line, "character": start}, "end": {"line": line, "character": end}})
}
