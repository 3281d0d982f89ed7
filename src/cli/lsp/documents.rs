//! Keeps the documents of an editor, within limits: which are open, and which of them must be checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use admit_apiserver::BuiltinTypes;
use admit_language::{Encoding, Workspace};
use admit_policy::LoadOptions;
use gen_lsp_types::{
    Diagnostic, DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, MessageType, PublishDiagnosticsParams, TextDocumentContentChangeEvent, Uri,
};
use lsp_server::Notification;

use super::LspOptions;
use super::folder::{Folder, is_of_interest};
use super::protocol::{self, key, parts};
use crate::cli::load::Found;

/// The largest document in bytes.
const MAX_DOCUMENT: usize = 16 * 1024 * 1024;
/// The most documents that are open.
const MAX_OPEN: usize = 1_000;

/// The contents of files, and which of them are open.
pub(super) struct Documents {
    pub(super) workspace: Workspace,
    /// The open files, each with the editor's URI and version.
    open: BTreeMap<String, (Uri, i32)>,
    /// Open files that must be checked.
    unchecked: BTreeSet<String>,
    /// Open files that are too large.
    oversized: BTreeSet<String>,
    folders: Vec<PathBuf>,
}

/// A notification to the editor, if there is one.
type Told = Option<Notification>;

impl Documents {
    pub(super) fn new(options: LspOptions, encoding: Encoding, folders: Vec<PathBuf>) -> Self {
        let options = LoadOptions { ignore_unknown: options.ignore_unknown };
        Self {
            workspace: Workspace::new(Box::new(BuiltinTypes::default()), options, encoding),
            open: BTreeMap::new(),
            unchecked: BTreeSet::new(),
            oversized: BTreeSet::new(),
            folders,
        }
    }

    /// Reads the policies and definitions in the editor's folders.
    pub(super) fn read_folders(&mut self) -> Vec<Notification> {
        let mut folder = Folder::default();
        self.folders.iter().for_each(|path| folder.read(path));
        for (file, text) in folder.files {
            self.workspace.open(&file, text);
        }
        folder.told.into_iter().map(|told| protocol::shown(MessageType::Warning, told)).collect()
    }

    /// Takes the next file to check.
    pub(super) fn unchecked(&mut self) -> Option<String> {
        let Self { unchecked, open, oversized, .. } = self;
        let next = std::iter::from_fn(|| unchecked.pop_first());
        next.into_iter().find(|file| open.contains_key(file) && !oversized.contains(file))
    }

    /// Marks a file to be checked again.
    pub(super) fn check_again(&mut self, file: String) {
        self.unchecked.insert(file);
    }

    /// Returns the editor's URI of a file.
    pub(super) fn uri(&self, file: &str) -> Uri {
        self.open.get(file).map_or_else(|| protocol::uri(file.as_ref()), |(uri, _)| uri.clone())
    }

    pub(super) fn opened(&mut self, params: DidOpenTextDocumentParams) -> Told {
        let document = params.text_document;
        let file = key(&document.uri);
        if !self.open.contains_key(&file) && self.open.len() >= MAX_OPEN {
            let text = format!("{MAX_OPEN} documents are open: {} is not looked at", document.uri.0);
            return Some(protocol::shown(MessageType::Warning, text));
        }
        self.open.insert(file.clone(), (document.uri, document.version));
        if document.text.len() > MAX_DOCUMENT {
            return self.too_large(&file);
        }
        self.workspace.open(&file, document.text);
        self.changed_file(file);
        None
    }

    pub(super) fn changed(&mut self, params: DidChangeTextDocumentParams) -> Told {
        let file = key(&params.text_document.text_document_identifier.uri);
        let (_, version) = self.open.get_mut(&file)?;
        *version = params.text_document.version;
        if self.oversized.contains(&file) {
            let whole = params.content_changes.into_iter().rev().find_map(|change| match change {
                TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => {
                    Some(whole.text)
                }
                TextDocumentContentChangeEvent::TextDocumentContentChangePartial(_) => None,
            });
            // Incremental changes of a document that is not known are ignored.
            if let Some(text) = whole.filter(|text| text.len() <= MAX_DOCUMENT) {
                self.oversized.remove(&file);
                self.workspace.open(&file, text);
                self.changed_file(file);
            }
            return None;
        }
        let changes: Vec<_> = params.content_changes.into_iter().map(parts).collect();
        self.workspace.change(&file, changes.iter().map(|(range, text)| (range.clone(), text.as_str())));
        if self.workspace.text(&file).map_or(0, str::len) > MAX_DOCUMENT {
            return self.too_large(&file);
        }
        self.changed_file(file);
        None
    }

    fn too_large(&mut self, file: &str) -> Told {
        self.workspace.close(file);
        self.unchecked.remove(file);
        self.oversized.insert(file.to_owned());
        let message = format!(
            "more than {MAX_DOCUMENT} bytes are too many for a manifest: the document is not looked at until it is opened anew"
        );
        self.publication(file, vec![protocol::of_document(message)])
    }

    /// Marks the file to be checked, with those that may depend on it.
    fn changed_file(&mut self, file: String) {
        if self.workspace.text(&file).is_some_and(is_of_interest) {
            let depends = |other: &&String| {
                self.workspace.text(other.as_str()).is_some_and(|text| text.contains("AdmissionPolicy"))
            };
            let open: Vec<String> = self.open.keys().filter(depends).cloned().collect();
            self.unchecked.extend(open);
        }
        self.unchecked.insert(file);
    }

    pub(super) fn closed(&mut self, params: &DidCloseTextDocumentParams) -> Told {
        let file = key(&params.text_document.uri);
        let told = self.publication(&file, Vec::new());
        self.open.remove(&file);
        self.unchecked.remove(&file);
        self.oversized.remove(&file);
        self.reread(&file);
        told
    }

    pub(super) fn written(&mut self, params: &DidChangeWatchedFilesParams) -> Told {
        for change in &params.changes {
            let file = key(&change.uri);
            if !self.open.contains_key(&file) {
                self.reread(&file);
                self.unchecked.extend(self.open.keys().cloned());
            }
        }
        None
    }

    /// Replaces the editor's text of a closed file by what is on disk, if the file lies in one of the folders.
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

    /// Creates the notification with the diagnostics of a file, if it is open.
    pub(super) fn publication(&self, file: &str, diagnostics: Vec<Diagnostic>) -> Told {
        let (uri, version) = self.open.get(file)?;
        let params = PublishDiagnosticsParams { uri: uri.clone(), version: Some(*version), diagnostics };
        Some(Notification::new("textDocument/publishDiagnostics".to_owned(), params))
    }
}
