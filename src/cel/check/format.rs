//! Checks constant format strings with literal arguments: that their number fits the clauses, and that their types are allowed (cel-go
//! `ext/formatting.go`).

use crate::library::extensions::format::{Clause, Piece, TemplateError, pieces};
use crate::syntax::{Entry, Expr, ExprId};
use crate::types::{Type, runtime_name};

use super::CheckedAst;

/// What is wrong, and with which argument; none for the call as a whole.
type Mistake = (Option<ExprId>, String);

pub(super) fn validate(checked: &CheckedAst, template: &str, arguments: &[ExprId]) -> Result<(), Mistake> {
    let mut clauses = 0_usize;
    for piece in pieces(template, usize::MAX) {
        let clause = match piece {
            Ok(Piece::Text(_)) => continue,
            Ok(Piece::Clause { clause, .. }) => Ok(clause),
            Err(error) => Err(error),
        };
        // A lone percent sign at the end is reported before a missing argument.
        let ends_early = matches!(clause, Err(TemplateError::Ends));
        let argument = match arguments.get(clauses) {
            None if !ends_early => return Err((None, format!("index {clauses} out of range"))),
            argument => argument,
        };
        let clause = clause.map_err(|error| (None, error.to_string()))?;
        clauses = clauses.saturating_add(1);
        if let Some(bad) = argument.and_then(|argument| unsuited(checked, clause, *argument)) {
            let name = runtime_name(checked.type_of(bad));
            return Err((Some(bad), format!("error during formatting: {}", clause.unsuited(name))));
        }
    }
    if arguments.len() > clauses {
        let given = arguments.len();
        let message =
            format!("too many arguments supplied to string.format (expected {clauses}, got {given})");
        return Err((None, message));
    }
    Ok(())
}

/// The argument, or the part of it, that a clause does not take.
fn unsuited(checked: &CheckedAst, clause: Clause, id: ExprId) -> Option<ExprId> {
    if !takes(clause, checked.type_of(id)) {
        return Some(id);
    }
    if clause != Clause::Text {
        return None;
    }
    match checked.ast.expr(id) {
        Expr::List { elements, .. } => {
            elements.iter().find_map(|element| unsuited(checked, clause, *element))
        }
        Expr::Map(entries) => {
            let parts = |entry: &Entry| [entry.key, entry.value];
            entries.iter().flat_map(parts).find_map(|part| unsuited(checked, clause, part))
        }
        _ => None,
    }
}

fn takes(clause: Clause, ty: &Type) -> bool {
    let ty = match ty {
        Type::Dyn | Type::Any => return true,
        Type::Wrapper(inner) => inner,
        ty => ty,
    };
    match clause {
        Clause::Text => !matches!(
            ty,
            Type::Optional(_) | Type::Opaque(_) | Type::Abstract(_) | Type::Object(_) | Type::Error
        ),
        Clause::Decimal | Clause::Octal => matches!(ty, Type::Int | Type::Uint),
        Clause::Fixed(_) | Clause::Scientific(_) => matches!(ty, Type::Double | Type::String),
        Clause::Binary => matches!(ty, Type::Int | Type::Uint | Type::Bool),
        Clause::Hexadecimal { .. } => matches!(ty, Type::Int | Type::Uint | Type::String | Type::Bytes),
    }
}
