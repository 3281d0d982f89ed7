//! Converts the outline of files to symbols of the protocol.

use admit_language::{Symbol, SymbolKind, Workspace};
use gen_lsp_types::{
    BaseSymbolInformation, DocumentSymbol, FoldingRange, Location, SymbolKind as ProtocolKind, Uri,
    WorkspaceSymbol, WorkspaceSymbolLocation,
};

use super::protocol;

/// The most symbols that one workspace query returns.
const MOST: usize = 512;

/// Converts a part of a file, with the parts in it.
pub(super) fn symbol(symbol: Symbol) -> DocumentSymbol {
    let Symbol { name, detail, kind, range, named, parts } = symbol;
    let children: Vec<DocumentSymbol> = parts.into_iter().map(self::symbol).collect();
    DocumentSymbol::new(
        name,
        (!detail.is_empty()).then_some(detail),
        kind_of(kind),
        None,
        None,
        protocol::range(&range),
        protocol::range(&named),
        (!children.is_empty()).then_some(children),
    )
}

fn kind_of(kind: SymbolKind) -> ProtocolKind {
    match kind {
        SymbolKind::Document => ProtocolKind::Class,
        SymbolKind::Version => ProtocolKind::Namespace,
        SymbolKind::Asked => ProtocolKind::Interface,
        SymbolKind::Variable => ProtocolKind::Variable,
        SymbolKind::Condition => ProtocolKind::Boolean,
        SymbolKind::Rule => ProtocolKind::Function,
        SymbolKind::Mutation => ProtocolKind::Operator,
        SymbolKind::Annotation => ProtocolKind::Property,
        SymbolKind::Case => ProtocolKind::Event,
    }
}

pub(super) fn fold((first, last): (usize, usize)) -> FoldingRange {
    let line = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    FoldingRange { start_line: line(first), end_line: line(last), ..FoldingRange::default() }
}

/// Finds the parts of all files whose names contain the characters of the query in order, ignoring case.
pub(super) fn everywhere(
    workspace: &Workspace,
    query: &str,
    uri: &dyn Fn(&str) -> Uri,
) -> Vec<WorkspaceSymbol> {
    let query: Vec<char> = query.to_lowercase().chars().collect();
    let mut found = Vec::new();
    for file in workspace.files() {
        let mut open: Vec<(Symbol, Option<String>)> =
            workspace.symbols(file).into_iter().rev().map(|symbol| (symbol, None)).collect();
        while let Some((symbol, container_name)) = open.pop() {
            if found.len() >= MOST {
                return found;
            }
            let Symbol { name, kind, named, parts, .. } = symbol;
            if is_meant(&name, &query) {
                let location = Location { uri: uri(file), range: protocol::range(&named) };
                let named = BaseSymbolInformation {
                    name: name.clone(),
                    kind: kind_of(kind),
                    tags: None,
                    container_name,
                };
                found.push(WorkspaceSymbol::new(WorkspaceSymbolLocation::Location(location), None, named));
            }
            open.extend(parts.into_iter().rev().map(|part| (part, Some(name.clone()))));
        }
    }
    found
}

fn is_meant(name: &str, query: &[char]) -> bool {
    let name = name.to_lowercase();
    let mut left = name.chars();
    query.iter().all(|wanted| left.any(|c| c == *wanted))
}
