//! What the expressions of a policy look at, by its document.

use std::collections::{BTreeMap, BTreeSet};

use admit_cel::syntax::{Ast, Expr, ExprId, Literal};
use serde_json::{Value, json};

use crate::reads::{self, Names, Reads};

/// Expressions of one tree, and literals of one policy, that are looked at.
const MOST_EXPRESSIONS: usize = 20_000;
const MOST_LITERALS: usize = 48;

/// What is read, in all expressions of a policy.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Of all validations.
    pub(super) validations: Reads,
    /// By the index of the validation.
    each: Vec<Reads>,
    pub(super) conditions: Reads,
    /// Texts and numbers that stand in expressions.
    pub(super) literals: Vec<Value>,
    /// Whether some expression asks the authorizer.
    pub(super) asks_authorizer: bool,
}

impl Rules {
    pub(super) fn of(document: &Value) -> Self {
        let text = |item: &Value, field: &str| {
            item.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let items = |field: &str| {
            let list = document.pointer(&format!("/spec/{field}")).and_then(Value::as_array);
            list.cloned().unwrap_or_default()
        };
        let mut rules = Self::default();
        let variables: BTreeMap<String, Ast> = items("variables")
            .iter()
            .filter_map(|item| Some((text(item, "name"), reads::parsed(&text(item, "expression"))?)))
            .collect();
        variables.values().for_each(|ast| rules.note(ast));
        let names = Names { node: None, variables };
        for item in items("validations") {
            let found = reads::parsed(&text(&item, "expression")).map(|ast| {
                rules.note(&ast);
                reads::of(&ast, &names)
            });
            let found = found.unwrap_or_default();
            rules.validations.add(&found);
            rules.each.push(found);
        }
        for item in items("matchConditions") {
            if let Some(ast) = reads::parsed(&text(&item, "expression")) {
                rules.note(&ast);
                rules.conditions.add(&reads::of(&ast, &Names::default()));
            }
        }
        let others = [&rules.validations, &rules.conditions];
        rules.asks_authorizer = others.iter().any(|reads| reads.others.contains("authorizer"));
        rules
    }

    fn note(&mut self, ast: &Ast) {
        let mut open: Vec<ExprId> = vec![ast.root()];
        let mut seen = 0_usize;
        while let Some(id) = open.pop() {
            seen = seen.saturating_add(1);
            if seen > MOST_EXPRESSIONS {
                return;
            }
            match ast.expr(id) {
                Expr::Literal(literal) => self.literal(literal),
                Expr::Ident(_) => {}
                Expr::Select { operand, .. } => open.push(*operand),
                Expr::Call { target, args, .. } => open.extend(target.iter().chain(args)),
                Expr::List { elements, .. } => open.extend(elements.iter()),
                Expr::Map(entries) | Expr::Struct { entries, .. } => {
                    open.extend(entries.iter().flat_map(|entry| [entry.key, entry.value]));
                }
                Expr::Comprehension(fold) => {
                    open.extend([fold.range, fold.accu_init, fold.condition, fold.step, fold.result]);
                }
            }
        }
    }

    fn literal(&mut self, literal: &Literal) {
        let value = match literal {
            Literal::Int(value) => json!(value),
            Literal::Double(value) => json!(value),
            Literal::String(text) => json!(text),
            Literal::Null | Literal::Bool(_) | Literal::Uint(_) | Literal::Bytes(_) => return,
        };
        if self.literals.len() < MOST_LITERALS && !self.literals.contains(&value) {
            self.literals.push(value);
        }
    }

    /// The paths of the new object that these validations read, and all where none is named.
    pub(super) fn patterns(&self, validations: &[usize]) -> BTreeSet<Vec<String>> {
        let of = |reads: &Reads| -> Vec<Vec<String>> {
            let places = reads.values.iter().chain(&reads.tests);
            places.filter(|place| !place.old).map(|place| place.path.clone()).collect()
        };
        let named: Vec<&Reads> = validations.iter().filter_map(|index| self.each.get(*index)).collect();
        if named.is_empty() {
            return of(&self.validations).into_iter().collect();
        }
        named.into_iter().flat_map(of).collect()
    }

    /// Whether some of these validations read the new object or the old one.
    pub(super) fn look_at_objects(&self, validations: &[usize]) -> bool {
        let mut named = validations.iter().filter_map(|index| self.each.get(*index));
        named.any(|reads| reads.paths().next().is_some())
    }

    /// Whether some expression reads the request.
    pub(super) fn reads_request(&self) -> bool {
        [&self.validations, &self.conditions].iter().any(|reads| reads.others.contains("request"))
    }

    /// Whether the change counts, and not the new object alone.
    pub(super) fn reads_old(&self) -> bool {
        let mut places = self.validations.values.iter().chain(&self.validations.tests);
        places.any(|place| place.old)
    }

    /// The paths of the old object that validations read.
    pub(super) fn read_of_old(&self) -> BTreeSet<Vec<String>> {
        let places = self.validations.values.iter().chain(&self.validations.tests);
        places.filter(|place| place.old).map(|place| place.path.clone()).collect()
    }

    /// The labels and annotations of the object itself that decide about something.
    pub(super) fn marks(&self) -> BTreeSet<Vec<String>> {
        let all = [&self.validations, &self.conditions].into_iter().flat_map(Reads::paths);
        let is_mark = |path: &&Vec<String>| matches!(path.as_slice(), [metadata, field, _] if metadata == "metadata" && matches!(field.as_str(), "labels" | "annotations"));
        all.filter(is_mark).cloned().collect()
    }

    /// Constants that a path is compared with, wherever.
    pub(super) fn compared_anywhere(&self, pattern: &[String]) -> Vec<Value> {
        let of = |reads: &Reads| reads.compared.get(pattern).cloned().unwrap_or_default();
        of(&self.validations).into_iter().chain(of(&self.conditions)).collect()
    }
}
