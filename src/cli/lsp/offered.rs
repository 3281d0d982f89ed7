//! Lists the capabilities of the server.

use gen_lsp_types::{
    CodeActionProvider, CodeLensOptions, CompletionOptions, DefinitionProvider, DocumentSymbolProvider,
    ExecuteCommandOptions, FoldingRangeProvider, HoverProvider, InitializeResult, InlayHintProvider,
    PositionEncodingKind, RenameProvider, ServerCapabilities, ServerInfo, TextDocumentSync,
    TextDocumentSyncKind, TextDocumentSyncOptions, WorkspaceSymbolProvider,
};

use super::answers;

/// Returns all capabilities, with positions in the given encoding.
pub(super) fn offered(kind: PositionEncodingKind) -> InitializeResult {
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
            code_action_provider: Some(CodeActionProvider::Bool(true)),
            code_lens_provider: Some(CodeLensOptions::default()),
            execute_command_provider: Some(ExecuteCommandOptions {
                commands: vec![answers::RUN_CASE.to_owned()],
                ..ExecuteCommandOptions::default()
            }),
            document_symbol_provider: Some(DocumentSymbolProvider::Bool(true)),
            workspace_symbol_provider: Some(WorkspaceSymbolProvider::Bool(true)),
            folding_range_provider: Some(FoldingRangeProvider::Bool(true)),
            inlay_hint_provider: Some(InlayHintProvider::Bool(true)),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo {
            name: "admit".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
    }
}
