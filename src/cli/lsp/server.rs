//! The loop: what is asked is answered in its order, and mistakes are looked for when nothing waits.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;

use admit_apiserver::BuiltinTypes;
use admit_language::{Encoding, Workspace};
use admit_policy::{LoadOptions, asking};
use crossbeam_channel::{Receiver, TryRecvError};
use gen_lsp_types::{
    CodeLensOptions, CompletionOptions, DefinitionProvider, Diagnostic, DidChangeTextDocumentParams,
    DidChangeWatchedFilesParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    ExecuteCommandOptions, ExecuteCommandParams, HoverProvider, InitializeParams, InitializeResult,
    InlayHintProvider, MessageType, PositionEncodingKind, PublishDiagnosticsParams, RenameProvider,
    ServerCapabilities, ServerInfo, ShowMessageParams, TextDocumentContentChangeEvent, TextDocumentSync,
    TextDocumentSyncKind, TextDocumentSyncOptions, Uri, WorkspaceFolders,
};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde::de::DeserializeOwned;

use super::folder::{Folder, is_of_interest};
use super::protocol::{key, parts};
use super::{answers, protocol, run};
use crate::cli::Exit;
use crate::cli::load::Found;

/// Bytes of a document.
const MAX_DOCUMENT: usize = 16 * 1024 * 1024;
/// Documents that are open.
const MAX_OPEN: usize = 1_000;
/// Messages that are taken out of the connection ahead of their turn, to see what was cancelled.
const MAX_AHEAD: usize = 256;
/// How often looking for mistakes is given up for something else before it is done all the same.
const MAX_GIVEN_UP: usize = 8;

/// What the server is told on its command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct LspOptions {
    /// Files may have objects of kinds that no policy uses.
    pub ignore_unknown: bool,
}

/// Serves one connection to its end, as `admit lsp` does: for tests, over one in memory.
pub fn serve(connection: Connection, options: LspOptions) -> Exit {
    Server::new(connection, options).run()
}

thread_local! {
    /// Where messages arrive, for work that is to be given up for them.
    static WAITING: RefCell<Option<Receiver<Message>>> = const { RefCell::new(None) };
}

/// Looking for mistakes was given up for a message.
struct Superseded;

/// The state of one connection.
pub(super) struct Server {
    connection: Connection,
    options: LspOptions,
    workspace: Workspace,
    /// What is open: by file, as the editor calls it, with its version.
    open: BTreeMap<String, (Uri, i32)>,
    /// Open files in which mistakes are to be looked for.
    unchecked: BTreeSet<String>,
    /// Open files that are too large.
    oversized: BTreeSet<String>,
    folders: Vec<PathBuf>,
    ahead: VecDeque<Message>,
    given_up: usize,
    /// The editor asks for values beside the lines again, when it is told that there are others.
    refreshes: bool,
    /// Of requests that the editor was sent.
    asked: i32,
    is_shut_down: bool,
}

impl Server {
    pub(super) fn new(connection: Connection, options: LspOptions) -> Self {
        Self {
            workspace: workspace(options, Encoding::Utf16),
            connection,
            options,
            open: BTreeMap::new(),
            unchecked: BTreeSet::new(),
            oversized: BTreeSet::new(),
            folders: Vec::new(),
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
        self.read_folders();
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
        // A client of another version is served by what is common.
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
        self.workspace = workspace(self.options, encoding);
        let folders = match params.workspace_folders_initialize_params.workspace_folders {
            Some(WorkspaceFolders::WorkspaceFolderList(folders)) => {
                folders.into_iter().map(|folder| folder.uri).collect()
            }
            Some(WorkspaceFolders::Null) | None => root.into_iter().collect::<Vec<_>>(),
        };
        self.folders = folders.iter().filter_map(protocol::path).collect();
        let triggers = [".", "'", "\""].map(str::to_owned).into();
        InitializeResult {
            capabilities: ServerCapabilities {
                position_encoding: Some(kind),
                text_document_sync: Some(TextDocumentSync::Options(TextDocumentSyncOptions {
                    open_close: Some(true),
                    change: Some(TextDocumentSyncKind::Incremental),
                    ..TextDocumentSyncOptions::default()
                })),
                hover_provider: Some(HoverProvider::Bool(true)),
                completion_provider: Some(CompletionOptions {
                    trigger_characters: Some(triggers),
                    ..CompletionOptions::default()
                }),
                definition_provider: Some(DefinitionProvider::Bool(true)),
                rename_provider: Some(RenameProvider::Bool(true)),
                code_lens_provider: Some(CodeLensOptions::default()),
                execute_command_provider: Some(ExecuteCommandOptions {
                    commands: vec![answers::RUN_CASE.to_owned()],
                    ..ExecuteCommandOptions::default()
                }),
                inlay_hint_provider: Some(InlayHintProvider::Bool(true)),
                ..ServerCapabilities::default()
            },
            server_info: Some(ServerInfo {
                name: "admit".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        }
    }

    fn read_folders(&mut self) {
        let mut folder = Folder::default();
        self.folders.iter().for_each(|path| folder.read(path));
        for (file, text) in folder.files {
            self.workspace.open(&file, text);
        }
        folder.told.into_iter().for_each(|told| self.show(told));
    }

    /// The next message; meanwhile mistakes are looked for. None where the editor has gone.
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
            match self.unchecked.pop_first() {
                Some(file) => self.check(file),
                None => return self.connection.receiver.recv().ok(),
            }
        }
    }

    /// Takes what has arrived, and requests out of it that were cancelled since.
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
        let uri = |file: &str| match self.open.get(file) {
            Some((uri, _)) => uri.clone(),
            None => protocol::uri(file.as_ref()),
        };
        let answer = answers::answer(&self.workspace, request, &key, &uri);
        self.send(answer);
    }

    /// Runs a case as it is saved, and tells how it ended.
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
                self.workspace.ran(ran.recorded);
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
        let wrong = match method.as_str() {
            "textDocument/didOpen" => read(params).map(|params| self.opened(params)),
            "textDocument/didChange" => read(params).map(|params| self.changed(params)),
            "textDocument/didClose" => read(params).map(|params| self.closed(&params)),
            "workspace/didChangeWatchedFiles" => read(params).map(|params| self.written(&params)),
            _ => Ok(()),
        };
        if let Err(error) = wrong {
            self.show(format!("`{method}` cannot be read: {error}"));
        }
    }

    fn opened(&mut self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        let file = key(&document.uri);
        if !self.open.contains_key(&file) && self.open.len() >= MAX_OPEN {
            return self.show(format!("{MAX_OPEN} documents are open: {} is not looked at", document.uri.0));
        }
        self.open.insert(file.clone(), (document.uri, document.version));
        if self.is_oversized(&file, document.text.len()) {
            return;
        }
        self.workspace.open(&file, document.text);
        self.changed_file(file);
    }

    fn changed(&mut self, params: DidChangeTextDocumentParams) {
        let file = key(&params.text_document.text_document_identifier.uri);
        let Some((_, version)) = self.open.get_mut(&file) else { return };
        *version = params.text_document.version;
        if self.oversized.contains(&file) {
            let whole = params.content_changes.into_iter().rev().find_map(|change| match change {
                TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => {
                    Some(whole.text)
                }
                TextDocumentContentChangeEvent::TextDocumentContentChangePartial(_) => None,
            });
            // Changes of a text that nobody has lead nowhere.
            if let Some(text) = whole.filter(|text| text.len() <= MAX_DOCUMENT) {
                self.oversized.remove(&file);
                self.workspace.open(&file, text);
                self.changed_file(file);
            }
            return;
        }
        let changes: Vec<_> = params.content_changes.into_iter().map(parts).collect();
        self.workspace.change(&file, changes.iter().map(|(range, text)| (range.clone(), text.as_str())));
        let length = self.workspace.text(&file).map_or(0, str::len);
        if !self.is_oversized(&file, length) {
            self.changed_file(file);
        }
    }

    fn is_oversized(&mut self, file: &str, length: usize) -> bool {
        let is_oversized = length > MAX_DOCUMENT;
        if is_oversized {
            self.workspace.close(file);
            self.unchecked.remove(file);
            self.oversized.insert(file.to_owned());
            let message = format!(
                "more than {MAX_DOCUMENT} bytes are too many for a manifest: the document is not looked at until it is opened anew"
            );
            self.publish(file, vec![protocol::of_document(message)]);
        }
        is_oversized
    }

    /// Mistakes are looked for in the file, and in those that may depend on it.
    fn changed_file(&mut self, file: String) {
        if self.workspace.text(&file).is_some_and(is_of_interest) {
            let depends = |other: &&String| {
                self.workspace.text(other.as_str()).is_some_and(|text| text.contains("AdmissionPolicy"))
            };
            let open: Vec<String> = self.open.keys().filter(depends).cloned().collect();
            self.unchecked.extend(open);
        }
        self.given_up = 0;
        self.unchecked.insert(file);
    }

    fn closed(&mut self, params: &DidCloseTextDocumentParams) {
        let file = key(&params.text_document.uri);
        self.publish(&file, Vec::new());
        self.open.remove(&file);
        self.unchecked.remove(&file);
        self.oversized.remove(&file);
        self.reread(&file);
    }

    fn written(&mut self, params: &DidChangeWatchedFilesParams) {
        for change in &params.changes {
            let file = key(&change.uri);
            if !self.open.contains_key(&file) {
                self.reread(&file);
                self.unchecked.extend(self.open.keys().cloned());
            }
        }
    }

    /// A file that is not open is what is written, if it lies in one of the folders.
    fn reread(&mut self, file: &str) {
        self.workspace.close(file);
        let path = PathBuf::from(file);
        if self.folders.iter().any(|folder| path.starts_with(folder))
            && let Ok(text) = (Found { path, named: false }).text()
            && is_of_interest(&text)
        {
            self.workspace.open(file, text);
        }
    }

    /// Looks for the mistakes of a file, and tells them; gives up where a message arrives meanwhile.
    fn check(&mut self, file: String) {
        if !self.open.contains_key(&file) || self.oversized.contains(&file) {
            return;
        }
        let ask = if self.given_up < MAX_GIVEN_UP { give_way } else { || {} };
        WAITING.set(Some(self.connection.receiver.clone()));
        let workspace = &mut self.workspace;
        let found = panic::catch_unwind(AssertUnwindSafe(|| asking(ask, || workspace.check(&file))));
        WAITING.set(None);
        match found {
            Ok(mistakes) => {
                self.given_up = 0;
                self.publish(&file, mistakes.iter().map(protocol::diagnostic).collect());
            }
            Err(reason) if reason.is::<Superseded>() => {
                self.given_up += 1;
                self.unchecked.insert(file);
            }
            Err(_) => self.show(format!("looking for mistakes in {file} failed: this is a mistake of admit")),
        }
    }

    fn publish(&self, file: &str, diagnostics: Vec<Diagnostic>) {
        if let Some((uri, version)) = self.open.get(file) {
            let params = PublishDiagnosticsParams { uri: uri.clone(), version: Some(*version), diagnostics };
            self.send(Notification::new("textDocument/publishDiagnostics".to_owned(), params));
        }
    }

    fn show(&self, message: String) {
        self.say(MessageType::Warning, message);
    }

    fn say(&self, kind: MessageType, message: String) {
        let params = ShowMessageParams { kind, message };
        self.send(Notification::new("window/showMessage".to_owned(), params));
    }

    fn send(&self, message: impl Into<Message>) {
        // An editor that has gone is noticed where the next message is waited for.
        let _ = self.connection.sender.send(message.into());
    }
}

fn workspace(options: LspOptions, encoding: Encoding) -> Workspace {
    let options = LoadOptions { ignore_unknown: options.ignore_unknown };
    Workspace::new(Box::new(BuiltinTypes::default()), options, encoding)
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
