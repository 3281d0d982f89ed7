//! Determines what the expressions of a policy read.

use std::collections::{BTreeMap, BTreeSet};

use admit_cel::syntax::{Ast, Expr, ExprId, Literal};
use serde_json::{Value, json};

use crate::reads::{self, Names, Reads};

/// The maximum number of expressions per tree, and of literals per policy, that are read.
const MOST_EXPRESSIONS: usize = 20_000;
const MOST_LITERALS: usize = 48;

/// What the expressions of a policy read.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// The reads of all validations.
    pub(super) validations: Reads,
    /// The reads by index of the validation.
    each: Vec<Reads>,
    pub(super) conditions: Reads,
    /// String and number literals of the expressions.
    pub(super) literals: Vec<Value>,
    /// Whether an expression uses the authorizer.
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

    /// Returns the paths of the new object that these validations read; all validations if none is given.
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

    /// Reports whether one of these validations reads the new or the old object.
    pub(super) fn look_at_objects(&self, validations: &[usize]) -> bool {
        let mut named = validations.iter().filter_map(|index| self.each.get(*index));
        named.any(|reads| reads.paths().next().is_some())
    }

    /// Reports whether an expression reads the request.
    pub(super) fn reads_request(&self) -> bool {
        [&self.validations, &self.conditions].iter().any(|reads| reads.others.contains("request"))
    }

    /// Reports whether expressions read the old object.
    pub(super) fn reads_old(&self) -> bool {
        let mut places = self.validations.values.iter().chain(&self.validations.tests);
        places.any(|place| place.old)
    }

    /// Returns the paths of the old object that validations read.
    pub(super) fn read_of_old(&self) -> BTreeSet<Vec<String>> {
        let places = self.validations.values.iter().chain(&self.validations.tests);
        places.filter(|place| place.old).map(|place| place.path.clone()).collect()
    }

    /// Returns the labels and annotations of the object that decide something.
    pub(super) fn marks(&self) -> BTreeSet<Vec<String>> {
        let all = [&self.validations, &self.conditions].into_iter().flat_map(Reads::paths);
        let is_mark = |path: &&Vec<String>| matches!(path.as_slice(), [metadata, field, _] if metadata == "metadata" && matches!(field.as_str(), "labels" | "annotations"));
        all.filter(is_mark).cloned().collect()
    }

    /// Returns the constants that any expression compares with a path.
    pub(super) fn compared_anywhere(&self, pattern: &[String]) -> Vec<Value> {
        let of = |reads: &Reads| reads.compared.get(pattern).cloned().unwrap_or_default();
        of(&self.validations).into_iter().chain(of(&self.conditions)).collect()
    }
}
