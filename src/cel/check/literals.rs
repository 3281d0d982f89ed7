//! Rejects constants that are well-typed but invalid: durations, timestamps and regular expressions that do not parse, lists and maps
//! of mixed types, format strings that do not match their arguments. The messages are those of cel-go's validators
//! (`cel/validator.go`), which Kubernetes enables.

use crate::diagnostic::Findings;
use crate::library::literal::is_regex;
use crate::source::Source;
use crate::syntax::{Entry, Expr, ExprId, Literal};
use crate::types::Type;

use super::unify::same;
use super::{CheckedAst, Environment, Reference, format};

/// Every mistake in the constants of an expression.
pub(super) fn validate<'s>(checked: &CheckedAst, source: Source<'s>, env: &Environment<'_>) -> Findings<'s> {
    let mut validator = Validator { checked, findings: Findings::new(source) };
    if env.homogeneous_literals {
        validator.aggregates();
    }
    if !env.checked_literals {
        return validator.findings;
    }
    validator.calls("duration", Validator::evaluates);
    validator.calls("timestamp", Validator::evaluates);
    validator.calls("matches", |_, _, literal| match literal {
        Literal::String(pattern) => is_regex(pattern),
        _ => true,
    });
    validator.format_calls();
    validator.findings
}

struct Validator<'c, 's> {
    checked: &'c CheckedAst,
    findings: Findings<'s>,
}

impl Validator<'_, '_> {
    fn ids(&self) -> impl DoubleEndedIterator<Item = ExprId> + use<> {
        (0..u32::try_from(self.checked.ast.len()).unwrap_or(u32::MAX)).map(ExprId)
    }

    fn error(&mut self, at: ExprId, message: String) {
        let ast = &self.checked.ast;
        self.findings.add(ast.span(at), ast.anchor(at), || message);
    }

    /// Judges the first argument of each call of a function, where it is a constant.
    fn calls(&mut self, name: &str, valid: impl Fn(&Self, ExprId, &Literal) -> bool) {
        let checked = self.checked;
        for id in self.ids() {
            let Expr::Call { function, args, .. } = checked.ast.expr(id) else { continue };
            let Some(first) = args.first().filter(|_| **function == *name) else { continue };
            if let Expr::Literal(literal) = checked.ast.expr(*first)
                && !valid(self, id, literal)
            {
                self.error(*first, format!("invalid {name} argument"));
            }
        }
    }

    /// Whether a call with a constant has a value.
    fn evaluates(&self, call: ExprId, literal: &Literal) -> bool {
        let Some(Reference::Overloads(rows)) = self.checked.reference(call) else { return true };
        rows.iter().all(|row| match literal {
            Literal::String(text) => row.takes_text(text),
            Literal::Int(number) => row.takes_int(*number),
            Literal::Null => false,
            _ => true,
        })
    }

    fn aggregates(&mut self) {
        let checked = self.checked;
        let exempt = self.within_format_calls();
        for id in self.ids().filter(|id| !exempt.contains(id)) {
            match checked.ast.expr(id) {
                Expr::List { elements, optional } => self.list(elements, optional),
                Expr::Map(entries) => self.map(entries),
                _ => {}
            }
        }
    }

    fn list(&mut self, elements: &[ExprId], optional: &[u32]) {
        let checked = self.checked;
        let mut types = (0_u32..).zip(elements).map(|(index, element)| {
            let ty = checked.type_of(*element);
            (*element, if optional.binary_search(&index).is_ok() { inner(ty) } else { ty })
        });
        let Some((_, first)) = types.next() else { return };
        if let Some((element, other)) = types.find(|(_, ty)| !same(first, ty)) {
            self.error(element, mixed(first, other));
        }
    }

    fn map(&mut self, entries: &[Entry]) {
        let checked = self.checked;
        let types = |entry: &Entry| {
            let value = checked.type_of(entry.value);
            (checked.type_of(entry.key), if entry.optional { inner(value) } else { value })
        };
        let Some((first, rest)) = entries.split_first() else { return };
        let (first_key, first_value) = types(first);
        for entry in rest {
            let (key, value) = types(entry);
            if !same(first_key, key) {
                self.error(entry.key, mixed(first_key, key));
            }
            if !same(first_value, value) {
                self.error(entry.value, mixed(first_value, value));
            }
        }
    }

    /// Everything inside calls of `format`, whose arguments are mixed by nature. A part's id is less than that of the
    /// whole, so that one walk from the last expression to the first finds all.
    fn within_format_calls(&self) -> std::collections::HashSet<ExprId> {
        let ast = &self.checked.ast;
        let mut inside = std::collections::HashSet::new();
        for id in self.ids().rev() {
            let formats = matches!(ast.expr(id), Expr::Call { function, .. } if &**function == "format");
            if formats || inside.contains(&id) {
                ast.for_each_part(id, |part| {
                    inside.insert(part);
                });
            }
        }
        inside
    }

    fn format_calls(&mut self) {
        let checked = self.checked;
        for id in self.ids() {
            let Expr::Call { function, target: Some(target), args } = checked.ast.expr(id) else { continue };
            if &**function != "format" {
                continue;
            }
            let (Expr::Literal(Literal::String(template)), [list]) = (checked.ast.expr(*target), &**args)
            else {
                continue;
            };
            if let Expr::List { elements, .. } = checked.ast.expr(*list)
                && let Err((at, message)) = format::validate(checked, template, elements)
            {
                self.error(at.unwrap_or(id), message);
            }
        }
    }
}

/// What an optional type holds.
fn inner(ty: &Type) -> &Type {
    match ty {
        Type::Optional(inner) => inner,
        other => other,
    }
}

fn mixed(expected: &Type, found: &Type) -> String {
    format!("expected type '{expected}' but found '{found}'")
}
