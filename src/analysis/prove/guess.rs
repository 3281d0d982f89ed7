//! Replaces boolean subexpressions that cannot be translated by unconstrained variables ("guesses").
//!
//! A proof with guesses holds whatever they are; a counterexample is reported only if the engine confirms
//! it. Equal expressions over equal values share one guess.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use admit_cel::syntax::{Expr, ExprId, Literal};

use super::Undecided;
use super::document::World;
use super::eval::Evaluator;
use super::guesses::MOST_KNOWN;
use super::term::{Sort, Term};
use super::value::Value;

/// String functions that never fail. `matches` with a literal pattern never fails either, since the pattern
/// was compiled.
const TOTAL: &[&str] = &[
    "startsWith",
    "endsWith",
    "contains",
    "isURL",
    "isIP",
    "isCIDR",
    "isQuantity",
    "lowerAscii",
    "upperAscii",
    "trim",
    "replace",
    "split",
    "size",
    "!_",
];

/// The maximum depth to which expressions are compared.
const MOST_DEPTH: usize = 64;

impl World<'_> {
    /// Sets the side and field whose expression is evaluated.
    pub(super) fn evaluate_at(&mut self, side: usize, field: &str) {
        self.guesses.at = (side, field.to_owned());
    }
}

impl Evaluator<'_, '_, '_> {
    /// Returns whether an expression is true and whether it fails, guessed if it cannot be translated.
    pub(super) fn truth_at(&mut self, id: ExprId) -> Result<(Term, Term), Undecided> {
        match self.eval(id).and_then(|outcome| self.world.truth(&outcome)) {
            Ok(truth) => Ok(truth),
            Err(why) => self.guess(id, why),
        }
    }

    /// Makes a guess in place of an expression that cannot be translated.
    pub(super) fn guess(&mut self, id: ExprId, why: Undecided) -> Result<(Term, Term), Undecided> {
        self.world.check_size()?;
        if !self.world.guesses.are_allowed {
            return Err(why);
        }
        let key = self.key(id);
        self.note_texts(id, MOST_DEPTH);
        if let Some(key) = &key
            && let Some(truth) = self.world.guesses.known.get(key)
        {
            return Ok(*truth);
        }
        // Errors of its operands come first.
        let mut errors = Vec::new();
        if !self.never_fails(id, MOST_DEPTH) {
            errors.push(self.world.terms.variable(Sort::Bool));
        }
        self.strict_errors(id, MOST_DEPTH, &mut errors);
        let truth = (self.world.terms.or(&errors), self.world.terms.variable(Sort::Bool));
        let guesses = &mut self.world.guesses;
        let why = why.of(guesses.at.0, &guesses.at.1);
        if !guesses.made.contains(&why) {
            guesses.made.push(why);
        }
        if let Some(key) = key.filter(|_| guesses.known.len() < MOST_KNOWN) {
            guesses.known.insert(key, truth);
        }
        Ok(truth)
    }

    /// Reports whether an expression fails only if a field fails that it names, with those failures
    /// translated.
    fn never_fails(&mut self, id: ExprId, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Literal(_) => true,
            Expr::Ident(name) => self.named(name).is_some_and(|outcome| {
                matches!(outcome.value, Value::Text(_))
                    && self.world.terms.known_bool(outcome.error) == Some(false)
            }),
            // For a value that may not be a string there may be no overload.
            Expr::Select { .. } => self.eval(id).is_ok_and(|outcome| matches!(outcome.value, Value::Text(_))),
            Expr::Call { function, target, args } => {
                let all: Vec<ExprId> = target.iter().chain(args.iter()).copied().collect();
                let is_total = TOTAL.contains(&&**function)
                    || (**function == *"matches"
                        && all.last().is_some_and(|last| matches!(ast.expr(*last), Expr::Literal(_))));
                is_total && all.into_iter().all(|part| self.never_fails(part, depth))
            }
            Expr::List { .. } | Expr::Map(_) | Expr::Struct { .. } | Expr::Comprehension(_) => false,
        }
    }

    /// Collects the conditions under which subexpressions fail that are always evaluated.
    fn strict_errors(&mut self, id: ExprId, depth: usize, errors: &mut Vec<Term>) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Select { operand, test_only, .. } => {
                let known = if *test_only { None } else { self.eval(id).ok() };
                match known {
                    Some(outcome) => errors.push(outcome.error),
                    None => self.strict_errors(*operand, depth, errors),
                }
            }
            Expr::Call { function, target, args } if is_strict(function) => {
                for part in target.iter().chain(args.iter()) {
                    self.strict_errors(*part, depth, errors);
                }
            }
            _ => {}
        }
    }

    /// Records the string literals of an expression and the strings of objects that it reads.
    fn note_texts(&mut self, id: ExprId, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let ast = self.ast;
        let parts: Vec<ExprId> = match ast.expr(id) {
            Expr::Literal(Literal::String(text)) => {
                self.world.guesses.literals.insert(text.to_string());
                Vec::new()
            }
            Expr::Call { target, args, .. } => target.iter().chain(args.iter()).copied().collect(),
            Expr::Select { operand, .. } => {
                if let Ok(outcome) = self.eval(id) {
                    self.note_values(&outcome.value);
                }
                vec![*operand]
            }
            Expr::Ident(name) => {
                if let Some(outcome) = self.named(name) {
                    self.note_values(&outcome.value);
                }
                Vec::new()
            }
            Expr::List { elements, .. } => elements.to_vec(),
            Expr::Comprehension(fold) => vec![fold.range, fold.condition, fold.step, fold.result],
            Expr::Literal(_) | Expr::Map(_) | Expr::Struct { .. } => Vec::new(),
        };
        parts.into_iter().for_each(|part| self.note_texts(part, depth));
    }

    fn note_values(&mut self, value: &Value) {
        match value {
            Value::Text(text) => {
                let found = self.world.terms.variables_of(&[*text]);
                let found = found.into_iter().filter(|term| self.world.terms.is_text(*term));
                self.world.guesses.texts.extend(found);
            }
            Value::List(list) => list.items.iter().for_each(|(_, item)| self.note_values(item)),
            Value::Optional(_, inner) => self.note_values(inner),
            Value::Choice(_, yes, no) => {
                self.note_values(yes);
                self.note_values(no);
            }
            _ => {}
        }
    }

    /// Builds a key from the expression and the values of its names; `None` if one is unknown.
    fn key(&self, id: ExprId) -> Option<String> {
        let (mut text, mut names) = (String::new(), BTreeSet::new());
        self.write(id, MOST_DEPTH, &mut text, &mut names)?;
        for name in names {
            if let Some(outcome) = self.named(&name) {
                let _ = write!(text, "{name}={outcome:?};");
            }
        }
        Some(text)
    }

    fn write(
        &self,
        id: ExprId,
        depth: usize,
        text: &mut String,
        names: &mut BTreeSet<Box<str>>,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        text.push('(');
        let mut parts: Vec<ExprId> = Vec::new();
        match self.ast.expr(id) {
            Expr::Literal(literal) => text.push_str(&format!("{literal:?}")),
            // Variables of policies are not distinguished here.
            Expr::Ident(name) if matches!(&**name, "variables" | "request" | "params" | "authorizer") => {
                return None;
            }
            Expr::Ident(name) => {
                text.push_str(name);
                names.insert(name.clone());
            }
            Expr::Select { operand, field, test_only } => {
                text.push_str(&format!("{field:?} {test_only}"));
                parts.push(*operand);
            }
            Expr::Call { function, target, args } => {
                text.push_str(&format!("{function:?} {}", target.is_some()));
                parts.extend(target.iter().chain(args.iter()));
            }
            Expr::List { elements, optional } => {
                text.push_str(&format!("{optional:?}"));
                parts.extend(elements.iter());
            }
            Expr::Map(entries) => {
                for entry in entries.iter() {
                    text.push_str(if entry.optional { "?" } else { "!" });
                    parts.extend([entry.key, entry.value]);
                }
            }
            Expr::Struct { .. } => return None,
            Expr::Comprehension(fold) => {
                text.push_str(&format!("{:?} {:?} {:?}", fold.iter_var, fold.iter_var2, fold.accu_var));
                parts.extend([fold.range, fold.accu_init, fold.condition, fold.step, fold.result]);
            }
        }
        for part in parts {
            self.write(part, depth, text, names)?;
        }
        text.push(')');
        Some(())
    }
}

/// Reports whether a function fails if one of its arguments fails.
fn is_strict(function: &str) -> bool {
    let is_optional =
        function.contains('?') || function.starts_with("optional") || matches!(function, "or" | "orValue");
    !is_optional
        && !matches!(function, "_&&_" | "_||_" | "@not_strictly_false" | "hasValue" | "value" | "_!=_")
}
