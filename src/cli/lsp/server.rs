//! Runs the main loop: requests are answered in their order, and files are checked when no message waits.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};

use admit_language::Encoding;
use admit_policy::asking;
use crossbeam_channel::{Receiver, TryRecvError};
use gen_lsp_types::{
    ExecuteCommandParams, InitializeParams, InitializeResult, MessageType, PositionEncodingKind, Uri,
    WorkspaceFolders,
};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde::de::DeserializeOwned;

use super::documents::Documents;
use super::offered::offered;
use super::protocol::key;
use super::{LspOptions, answers, protocol, run};
use crate::cli::Exit;

/// The most messages that are read ahead, to see which requests were cancelled.
const MAX_AHEAD: usize = 256;
/// How often a check is aborted for messages before it runs to its end all the same.
const MAX_GIVEN_UP: usize = 8;

/// Serves one connection to its end, as `admit lsp` does; tests use one in memory.
pub fn serve(connection: Connection, options: LspOptions) -> Exit {
    Server::new(connection, options).run()
}

thread_local! {
    /// The channel of incoming messages, for a check that is aborted when one arrives.
    static WAITING: RefCell<Option<Receiver<Message>>> = const { RefCell::new(None) };
}

/// The payload of an aborted check.
struct Superseded;

/// The state of one connection.
pub(super) struct Server {
    connection: Connection,
    options: LspOptions,
    documents: Documents,
    ahead: VecDeque<Message>,
    given_up: usize,
    /// Whether the editor can be asked to request inlay hints again.
    refreshes: bool,
    /// The number of requests that were sent to the editor.
    asked: i32,
    is_shut_down: bool,
}

impl Server {
    pub(super) fn new(connection: Connection, options: LspOptions) -> Self {
        Self {
            documents: Documents::new(options, Encoding::Utf16, Vec::new()),
            connection,
            options,
            ahead: VecDeque::new(),
            given_up: 0,
            refreshes: false,
            asked: 0,
            is_shut_down: false,
        }
    }

    pub(super) fn run(mut self) -> Exit {
        let Ok((id, params)) = self.connection.initialize_start() else { return Exit::Differs };
        let result = self.initialize(params);
        let Ok(result) = serde_json::to_value(result) else { return Exit::Internal };
        if self.connection.sender.send(Response::new_ok(id, result).into()).is_err() {
            return Exit::Differs;
        }
        self.documents.read_folders().into_iter().for_each(|told| self.send(told));
        while let Some(message) = self.next() {
            match message {
                Message::Request(request) => self.request(request),
                Message::Notification(told) if told.method == "exit" => {
                    return if self.is_shut_down { Exit::Expected } else { Exit::Differs };
                }
                Message::Notification(told) => self.told(told),
                Message::Response(_) => {}
            }
        }
        Exit::Differs
    }

    fn initialize(&mut self, params: serde_json::Value) -> InitializeResult {
        // Parameters of other protocol versions are ignored.
        let root = params.get("rootUri").and_then(serde_json::Value::as_str).map(|uri| Uri(uri.to_owned()));
        self.refreshes = params
            .pointer("/capabilities/workspace/inlayHint/refreshSupport")
            .and_then(serde_json::Value::as_bool)
            .unwrap_or_default();
        let params: InitializeParams = serde_json::from_value(params).unwrap_or_default();
        let encodings = params.capabilities.general.and_then(|general| general.position_encodings);
        let utf8 = encodings.is_some_and(|known| known.contains(&PositionEncodingKind::UTF8));
        let (encoding, kind) = if utf8 {
            (Encoding::Utf8, PositionEncodingKind::UTF8)
        } else {
            (Encoding::Utf16, PositionEncodingKind::UTF16)
        };
        let folders = match params.workspace_folders_initialize_params.workspace_folders {
            Some(WorkspaceFolders::WorkspaceFolderList(folders)) => {
                folders.into_iter().map(|folder| folder.uri).collect()
            }
            Some(WorkspaceFolders::Null) | None => root.into_iter().collect::<Vec<_>>(),
        };
        let folders = folders.iter().filter_map(protocol::path).collect();
        self.documents = Documents::new(self.options, encoding, folders);
        offered(kind)
    }

    /// Waits for the next message, and checks files meanwhile. None if the editor has closed the connection.
    fn next(&mut self) -> Option<Message> {
        loop {
            self.look_ahead();
            if let Some(message) = self.ahead.pop_front() {
                return Some(message);
            }
            match self.connection.receiver.try_recv() {
                Ok(message) => return Some(message),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            match self.documents.unchecked() {
                Some(file) => self.check(file),
                None => return self.connection.receiver.recv().ok(),
            }
        }
    }

    /// Reads the messages that have arrived, and drops requests that were cancelled since.
    fn look_ahead(&mut self) {
        while self.ahead.len() < MAX_AHEAD {
            let Ok(message) = self.connection.receiver.try_recv() else { return };
            match message {
                Message::Notification(told) if told.method == "$/cancelRequest" => self.cancel(&told.params),
                message => self.ahead.push_back(message),
            }
        }
    }

    fn cancel(&mut self, params: &serde_json::Value) {
        let Some(id) = params.get("id") else { return };
        let Ok(id) = serde_json::from_value::<RequestId>(id.clone()) else { return };
        let is_it = |message: &Message| matches!(message, Message::Request(request) if request.id == id);
        if let Some(at) = self.ahead.iter().position(is_it) {
            drop(self.ahead.remove(at));
            self.send(Response::new_err(id, ErrorCode::RequestCanceled as i32, "cancelled".to_owned()));
        }
    }

    fn request(&mut self, request: Request) {
        if self.is_shut_down {
            let code = ErrorCode::InvalidRequest as i32;
            return self.send(Response::new_err(request.id, code, "the server is shut down".to_owned()));
        }
        if request.method == "shutdown" {
            self.is_shut_down = true;
            return self.send(Response::new_ok(request.id, ()));
        }
        if request.method == "workspace/executeCommand" {
            return self.execute(request);
        }
        let documents = &self.documents;
        let answer = answers::answer(&documents.workspace, request, &key, &|file: &str| documents.uri(file));
        self.send(answer);
    }

    /// Runs a case of a saved suite, and reports its result.
    fn execute(&mut self, request: Request) {
        let refused =
            |code: ErrorCode, text: String| Response::new_err(request.id.clone(), code as i32, text);
        let params = match read::<ExecuteCommandParams>(request.params) {
            Ok(params) => params,
            Err(error) => return self.send(refused(ErrorCode::InvalidParams, error.to_string())),
        };
        let mut arguments = params.arguments.iter().flatten().filter_map(serde_json::Value::as_str);
        let (Some(suite), Some(case)) = (arguments.next(), arguments.next()) else {
            let text = format!("`{}` takes the URI of a suite and the name of a case", answers::RUN_CASE);
            return self.send(refused(ErrorCode::InvalidParams, text));
        };
        if params.command != answers::RUN_CASE {
            let text = format!("there is no command `{}`", params.command);
            return self.send(refused(ErrorCode::InvalidParams, text));
        }
        match run::case(&key(&Uri(suite.to_owned())), case) {
            Ok(ran) => {
                self.documents.workspace.ran(ran.recorded);
                let kind = if ran.passed { MessageType::Info } else { MessageType::Warning };
                self.say(kind, ran.told.clone());
                let result =
                    serde_json::json!({"passed": ran.passed, "outcome": ran.outcome, "message": ran.told});
                self.send(Response::new_ok(request.id, result));
                if self.refreshes {
                    self.asked += 1;
                    let id = RequestId::from(format!("admit-{}", self.asked));
                    self.send(Request::new(id, "workspace/inlayHint/refresh".to_owned(), ()));
                }
            }
            Err(text) => self.send(refused(ErrorCode::RequestFailed, text.message)),
        }
    }

    fn told(&mut self, told: Notification) {
        let Notification { method, params } = told;
        let documents = &mut self.documents;
        let told = match method.as_str() {
            "textDocument/didOpen" => read(params).map(|params| documents.opened(params)),
            "textDocument/didChange" => read(params).map(|params| documents.changed(params)),
            "textDocument/didClose" => read(params).map(|params| documents.closed(&params)),
            "workspace/didChangeWatchedFiles" => read(params).map(|params| documents.written(&params)),
            _ => return,
        };
        self.given_up = 0;
        match told {
            Ok(told) => told.into_iter().for_each(|told| self.send(told)),
            Err(error) => self.show(format!("`{method}` cannot be read: {error}")),
        }
    }

    /// Checks a file, and publishes its diagnostics; aborted if a message arrives meanwhile.
    fn check(&mut self, file: String) {
        let ask = if self.given_up < MAX_GIVEN_UP { give_way } else { || {} };
        WAITING.set(Some(self.connection.receiver.clone()));
        let workspace = &mut self.documents.workspace;
        let found = panic::catch_unwind(AssertUnwindSafe(|| asking(ask, || workspace.check(&file))));
        WAITING.set(None);
        match found {
            Ok(mistakes) => {
                self.given_up = 0;
                let mistakes = mistakes.iter().map(protocol::diagnostic).collect();
                let told = self.documents.publication(&file, mistakes);
                told.into_iter().for_each(|told| self.send(told));
            }
            Err(reason) if reason.is::<Superseded>() => {
                self.given_up += 1;
                self.documents.check_again(file);
            }
            Err(_) => self.show(format!("looking for mistakes in {file} failed: this is a mistake of admit")),
        }
    }

    fn show(&self, message: String) {
        self.say(MessageType::Warning, message);
    }

    fn say(&self, kind: MessageType, message: String) {
        self.send(protocol::shown(kind, message));
    }

    fn send(&self, message: impl Into<Message>) {
        // A closed connection is noticed when the next message is awaited.
        let _ = self.connection.sender.send(message.into());
    }
}

fn read<P: DeserializeOwned>(params: serde_json::Value) -> Result<P, serde_json::Error> {
    serde_json::from_value(params)
}

fn give_way() {
    let waits = WAITING.with_borrow(|waiting| waiting.as_ref().is_some_and(|messages| !messages.is_empty()));
    if waits {
        panic::resume_unwind(Box::new(Superseded));
    }
}
