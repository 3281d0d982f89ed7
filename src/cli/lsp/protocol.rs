//! Converts positions, file names and results to the types of the protocol, and back.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use admit_language::{Edit, Fix, Item, ItemKind, Mistake, Place};
use admit_policy::lint::Severity;
use gen_lsp_types::{
    Code, CodeAction, CodeActionKind, CompletionItem, CompletionItemKind, CompletionItemTextEdit, Diagnostic,
    DiagnosticSeverity, Documentation, MarkupContent, MarkupKind, Message, MessageType, Position,
    Range as ProtocolRange, ShowMessageParams, TextDocumentContentChangeEvent, TextEdit, Uri, WorkspaceEdit,
};
use lsp_server::Notification;

/// The `source` of all diagnostics.
const SOURCE: &str = "admit";

pub(super) fn place(position: Position) -> Place {
    Place { line: position.line, character: position.character }
}

pub(super) fn range(places: &Range<Place>) -> ProtocolRange {
    let position = |place: Place| Position { line: place.line, character: place.character };
    ProtocolRange { start: position(places.start), end: position(places.end) }
}

pub(super) fn diagnostic(mistake: &Mistake) -> Diagnostic {
    let mut message = mistake.message.clone();
    if !mistake.help.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(message, "\nhelp: {}", mistake.help);
    }
    Diagnostic {
        range: range(&mistake.range),
        severity: Some(match mistake.severity {
            Severity::Error => DiagnosticSeverity::Error,
            Severity::Warning => DiagnosticSeverity::Warning,
            Severity::Note => DiagnosticSeverity::Information,
        }),
        code: Some(Code::String(mistake.code.to_owned())),
        source: Some(SOURCE.to_owned()),
        message: Message::String(message),
        ..Diagnostic::default()
    }
}

/// Creates a diagnostic about a document as a whole.
pub(super) fn of_document(message: String) -> Diagnostic {
    Diagnostic {
        severity: Some(DiagnosticSeverity::Error),
        source: Some(SOURCE.to_owned()),
        message: Message::String(message),
        ..Diagnostic::default()
    }
}

/// Converts changes of one document.
pub(super) fn edits(uri: Uri, edits: Vec<Edit>) -> WorkspaceEdit {
    let edits = edits.into_iter().map(|edit| TextEdit { range: range(&edit.range), new_text: edit.text });
    WorkspaceEdit { changes: Some(HashMap::from([(uri, edits.collect())])), ..WorkspaceEdit::default() }
}

/// Creates a code action that fixes a mistake of a document.
pub(super) fn action(fix: Fix, uri: Uri) -> CodeAction {
    CodeAction {
        title: fix.title,
        kind: Some(CodeActionKind::QuickFix),
        edit: Some(edits(uri, vec![fix.edit])),
        ..CodeAction::default()
    }
}

/// Creates a message that the editor shows.
pub(super) fn shown(kind: MessageType, message: String) -> Notification {
    Notification::new("window/showMessage".to_owned(), ShowMessageParams { kind, message })
}

pub(super) fn markdown(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}

pub(super) fn item(item: Item, replaced: ProtocolRange) -> CompletionItem {
    let Item { label, kind, detail, documentation } = item;
    CompletionItem {
        kind: Some(match kind {
            ItemKind::Field => CompletionItemKind::Field,
            ItemKind::Variable => CompletionItemKind::Variable,
            ItemKind::Value => CompletionItemKind::EnumMember,
            ItemKind::Function => CompletionItemKind::Function,
            ItemKind::Macro => CompletionItemKind::Keyword,
        }),
        detail: (!detail.is_empty()).then_some(detail),
        documentation: (!documentation.is_empty())
            .then(|| Documentation::MarkupContent(markdown(documentation))),
        text_edit: Some(CompletionItemTextEdit::TextEdit(TextEdit {
            range: replaced,
            new_text: label.clone(),
        })),
        label,
        ..CompletionItem::default()
    }
}

/// Returns the name of a file: its path, so that different URIs of a file have the same name.
pub(super) fn key(uri: &Uri) -> String {
    path(uri).map_or_else(|| uri.0.clone(), |path| path.display().to_string())
}

/// Returns the range that a change replaces (None for the whole text), and its new text.
pub(super) fn parts(change: TextDocumentContentChangeEvent) -> (Option<Range<Place>>, String) {
    match change {
        TextDocumentContentChangeEvent::TextDocumentContentChangePartial(part) => {
            let range = place(part.range.start)..place(part.range.end);
            (Some(range), part.text)
        }
        TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => (None, whole.text),
    }
}

/// Returns the path of a `file:` URI.
pub(super) fn path(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.0.strip_prefix("file://")?;
    // The part before the path is the host, which is this one.
    let path = rest.get(rest.find('/')?..)?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.bytes();
    while let Some(byte) = left.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || left.next().and_then(|digit| char::from(digit).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// Returns the URI of a file.
pub(super) fn uri(path: &Path) -> Uri {
    let mut out = "file://".to_owned();
    for byte in path.to_string_lossy().bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    Uri(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_its_uri() {
        let file = Path::new("/a b/ä%.yaml");
        assert_eq!(uri(file).0, "file:///a%20b/%C3%A4%25.yaml");
        assert_eq!(path(&uri(file)).as_deref(), Some(file));
        assert_eq!(path(&Uri("file://host/a%3Ab".to_owned())), Some(PathBuf::from("/a:b")));
        for none in ["untitled:1", "file://", "file:///%", "file:///%zz", "file:///%ff"] {
            assert_eq!(path(&Uri(none.to_owned())), None, "{none}");
        }
    }
}
