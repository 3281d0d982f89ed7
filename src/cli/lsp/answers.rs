//! Answers the requests of the editor.

use admit_language::Workspace;
use gen_lsp_types::{
    CodeActionParams, CodeLens, CodeLensParams, Command, CompletionList, CompletionParams, Contents,
    DefinitionParams, DocumentSymbolParams, FoldingRangeParams, Hover, HoverParams, InlayHint,
    InlayHintParams, Label, Location, RenameParams, TextDocumentPositionParams, Uri, WorkspaceSymbolParams,
};
use lsp_server::{ErrorCode, Request, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{outline, protocol};

/// The command that runs a case of a suite, and shows the values of its expressions beside their lines.
pub(super) const RUN_CASE: &str = "admit.runCase";

/// Why a request fails: the error code of the protocol, and the message.
struct Refused(ErrorCode, String);

/// Answers a request. `key` maps URIs to file names, and `uri` file names to URIs.
pub(super) fn answer(
    workspace: &Workspace,
    request: Request,
    key: &dyn Fn(&Uri) -> String,
    uri: &dyn Fn(&str) -> Uri,
) -> Response {
    let Request { id, method, params } = request;
    let answered = match method.as_str() {
        "textDocument/hover" => read(params).and_then(|params: HoverParams| {
            let (file, place) = asked(&params.text_document_position_params, key);
            value(workspace.hover(&file, place).map(|told| Hover {
                contents: Contents::MarkupContent(protocol::markdown(told.text)),
                range: Some(protocol::range(&told.range)),
            }))
        }),
        "textDocument/completion" => read(params).and_then(|params: CompletionParams| {
            let (file, place) = asked(&params.text_document_position_params, key);
            value(workspace.complete(&file, place).map(|(replaced, items)| {
                let replaced = protocol::range(&replaced);
                let items = items.into_iter().map(|item| protocol::item(item, replaced)).collect();
                CompletionList { is_incomplete: false, items, ..CompletionList::default() }
            }))
        }),
        "textDocument/definition" => read(params).and_then(|params: DefinitionParams| {
            let (file, place) = asked(&params.text_document_position_params, key);
            let found = workspace.definition(&file, place);
            value(found.map(|found| Location { uri: uri(&found.file), range: protocol::range(&found.range) }))
        }),
        "textDocument/rename" => {
            read(params).and_then(|params: RenameParams| rename(workspace, &params, key))
        }
        "textDocument/codeAction" => read(params).and_then(|params: CodeActionParams| {
            let uri = &params.text_document.uri;
            let asked = protocol::place(params.range.start)..protocol::place(params.range.end);
            let fixes = workspace.fixes(&key(uri), asked).into_iter();
            value(fixes.map(|fix| protocol::action(fix, uri.clone())).collect::<Vec<_>>())
        }),
        "textDocument/codeLens" => read(params)
            .and_then(|params: CodeLensParams| value(lenses(workspace, &params.text_document.uri, key))),
        "textDocument/inlayHint" => {
            read(params).and_then(|params: InlayHintParams| value(hints(workspace, &params, key)))
        }
        "textDocument/documentSymbol" => read(params).and_then(|params: DocumentSymbolParams| {
            let symbols = workspace.symbols(&key(&params.text_document.uri)).into_iter();
            value(symbols.map(outline::symbol).collect::<Vec<_>>())
        }),
        "textDocument/foldingRange" => read(params).and_then(|params: FoldingRangeParams| {
            let folds = workspace.folds(&key(&params.text_document.uri)).into_iter();
            value(folds.map(outline::fold).collect::<Vec<_>>())
        }),
        "workspace/symbol" => read(params).and_then(|params: WorkspaceSymbolParams| {
            value(outline::everywhere(workspace, &params.query, uri))
        }),
        _ => Err(Refused(ErrorCode::MethodNotFound, format!("`{method}` is not supported"))),
    };
    match answered {
        Ok(result) => Response::new_ok(id, result),
        Err(Refused(code, message)) => Response::new_err(id, code as i32, message),
    }
}

/// Returns the code lenses that run the cases of a suite.
fn lenses(workspace: &Workspace, uri: &Uri, key: &dyn Fn(&Uri) -> String) -> Vec<CodeLens> {
    let lens = |(name, range): (String, _)| CodeLens {
        range: protocol::range(&range),
        command: Some(Command {
            title: "run this case".to_owned(),
            command: RUN_CASE.to_owned(),
            arguments: Some(vec![uri.0.clone().into(), name.into()]),
            ..Command::default()
        }),
        data: None,
    };
    workspace.cases(&key(uri)).into_iter().map(lens).collect()
}

/// Returns inlay hints with the values of expressions in the last run of a case.
fn hints(workspace: &Workspace, params: &InlayHintParams, key: &dyn Fn(&Uri) -> String) -> Vec<InlayHint> {
    let asked = protocol::place(params.range.start)..=protocol::place(params.range.end);
    let values = workspace.values(&key(&params.text_document.uri)).into_iter();
    let hint = |(place, text): (_, String)| InlayHint {
        position: protocol::range(&(place..place)).start,
        label: Label::String(text),
        kind: None,
        text_edits: None,
        tooltip: None,
        padding_left: Some(true),
        padding_right: None,
        data: None,
    };
    values.filter(|(place, _)| asked.contains(place)).map(hint).collect()
}

fn rename(
    workspace: &Workspace,
    params: &RenameParams,
    key: &dyn Fn(&Uri) -> String,
) -> Result<Value, Refused> {
    let (file, place) = asked(&params.text_document_position_params, key);
    let edits = workspace.rename(&file, place, &params.new_name);
    let edits = edits.map_err(|error| Refused(ErrorCode::RequestFailed, error.to_string()))?;
    value(protocol::edits(params.text_document_position_params.text_document.uri.clone(), edits))
}

fn asked(at: &TextDocumentPositionParams, key: &dyn Fn(&Uri) -> String) -> (String, admit_language::Place) {
    (key(&at.text_document.uri), protocol::place(at.position))
}

fn read<P: DeserializeOwned>(params: Value) -> Result<P, Refused> {
    serde_json::from_value(params).map_err(|error| Refused(ErrorCode::InvalidParams, error.to_string()))
}

fn value(answer: impl Serialize) -> Result<Value, Refused> {
    serde_json::to_value(answer).map_err(|error| Refused(ErrorCode::InternalError, error.to_string()))
}
