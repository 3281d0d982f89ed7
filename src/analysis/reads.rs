//! Determines what an expression reads: paths in the new and the old object, the constants that it compares them with, and everything
//! else that it uses.
//!
//! Every path that may affect the value is found; some that never do may be included. So a conclusion drawn from the paths may miss
//! that an expression is independent of a field, but never that it depends on one.

use std::collections::{BTreeMap, BTreeSet};

use admit_cel::Source;
use admit_cel::syntax::{self, Ast, Comprehension, Expr, ExprId, Literal, macros};
use serde_json::{Value, json};

/// The elements of a list, and the values of a map, in a place.
pub(crate) const EACH: &str = "[]";

/// Variables within variables that are followed; definitions cannot be circular.
const DEPTH: usize = 32;

/// A place of the new or the old object.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Place {
    pub(crate) old: bool,
    /// Names of fields, and [`EACH`].
    pub(crate) path: Vec<String>,
}

/// What an expression looks at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// Places whose values count.
    pub(crate) values: BTreeSet<Place>,
    /// Paths of which only the presence matters.
    pub(crate) tests: BTreeSet<Place>,
    /// The constants that are compared with the value at a path.
    pub(crate) compared: BTreeMap<Vec<String>, Vec<Value>>,
    /// Other variables: `params`, `request`, `authorizer`, `namespaceObject`.
    pub(crate) others: BTreeSet<String>,
    /// Whether the user of the request is read.
    pub(crate) user: bool,
    /// Separators of `split`.
    pub(crate) separators: BTreeSet<String>,
}

impl Reads {
    /// Every place, with its path alone.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Vec<String>> {
        self.values.iter().chain(&self.tests).map(|place| &place.path)
    }

    /// Paths whose value in the new object and in the old one counts.
    pub(crate) fn in_both(&self) -> impl Iterator<Item = &Vec<String>> {
        let is_of_old = |place: &&Place| self.values.contains(&Place { old: true, path: place.path.clone() });
        self.values.iter().filter(|place| !place.old).filter(is_of_old).map(|place| &place.path)
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.values.extend(more.values.iter().cloned());
        self.tests.extend(more.tests.iter().cloned());
        for (path, constants) in &more.compared {
            constants.iter().for_each(|constant| self.compare(path, constant));
        }
        self.others.extend(more.others.iter().cloned());
        self.user |= more.user;
        self.separators.extend(more.separators.iter().cloned());
    }

    fn compare(&mut self, path: &[String], constant: &Value) {
        let constants = self.compared.entry(path.to_vec()).or_default();
        if !constants.contains(constant) {
            constants.push(constant.clone());
        }
    }
}

/// The names that an expression of a document may use.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The path of `self`, for a definition's rule.
    pub(crate) node: Option<Vec<String>>,
    /// The composed variables of a policy.
    pub(crate) variables: BTreeMap<String, Ast>,
}

/// Parses a text; None if it is not an expression.
pub(crate) fn parsed(text: &str) -> Option<Ast> {
    let sets = [macros::STANDARD, macros::OPTIONAL, macros::TWO_VARIABLE, macros::LISTS];
    let macros = sets.into_iter().flatten().collect();
    let options = syntax::Options { optional_syntax: true, escaped_identifiers: true, macros };
    syntax::parse(&Source::new(text), &options).ok()
}

/// Parses a text, with macros as calls.
pub(crate) fn as_written(text: &str) -> Option<Ast> {
    let options = syntax::Options { optional_syntax: true, escaped_identifiers: true, macros: Vec::new() };
    syntax::parse(&Source::new(text), &options).ok()
}

/// What the expression looks at.
pub(crate) fn of(ast: &Ast, names: &Names) -> Reads {
    with_outcomes(ast, names).0
}

/// Returns what the expression reads, and the constants that may be its result.
pub(crate) fn with_outcomes(ast: &Ast, names: &Names) -> (Reads, Vec<Value>) {
    let mut walk = Walk { names, reads: Reads::default(), depth: 0 };
    let found = walk.value(ast, ast.root(), &mut Vec::new());
    walk.consume(&found);
    (walk.reads, found.constants)
}

/// The possible values of an expression: values at these paths, or these constants.
#[derive(Clone, Debug, Default)]
struct Found {
    places: Vec<Place>,
    constants: Vec<Value>,
    /// It is the variable of composed variables.
    is_variables: bool,
}

impl Found {
    fn and(mut self, other: Self) -> Self {
        self.places.extend(other.places);
        self.constants.extend(other.constants);
        self
    }

    fn below(&self, name: &str) -> Self {
        let deeper = |place: &Place| Place {
            old: place.old,
            path: place.path.iter().cloned().chain([name.to_owned()]).collect(),
        };
        Self { places: self.places.iter().map(deeper).collect(), ..Self::default() }
    }

    /// Converts them to the elements of a list.
    fn listed(mut self) -> Self {
        for place in &mut self.places {
            if place.path.last().is_some_and(|last| last == EACH) {
                place.path.pop();
            }
        }
        self
    }
}

struct Walk<'n> {
    names: &'n Names,
    reads: Reads,
    depth: usize,
}

type Scope = Vec<(Box<str>, Found)>;

impl Walk<'_> {
    fn consume(&mut self, found: &Found) {
        self.reads.values.extend(found.places.iter().cloned());
    }

    fn value(&mut self, ast: &Ast, id: ExprId, scope: &mut Scope) -> Found {
        match ast.expr(id) {
            Expr::Literal(literal) => {
                Found { constants: constant(literal).into_iter().collect(), ..Found::default() }
            }
            Expr::Ident(name) => self.name(name, scope),
            Expr::Select { operand, field, test_only } => {
                self.select(ast, (*operand, field, *test_only), scope)
            }
            Expr::Call { function, target, args } => self.call(ast, function, (*target, args), scope),
            Expr::List { elements, .. } => {
                let all = elements.iter().map(|element| self.value(ast, *element, scope));
                all.fold(Found::default(), Found::and).listed()
            }
            Expr::Map(entries) | Expr::Struct { entries, .. } => {
                let mut keys = Found::default();
                for entry in entries {
                    let value = self.value(ast, entry.value, scope);
                    self.consume(&value);
                    keys = keys.and(self.value(ast, entry.key, scope)).and(value);
                }
                self.consume(&keys);
                Found { places: Vec::new(), ..keys }
            }
            Expr::Comprehension(fold) => self.fold(ast, fold, scope),
        }
    }

    fn name(&mut self, name: &str, scope: &Scope) -> Found {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, found)) = scope.iter().rev().find(|(bound, _)| &**bound == name) {
            return found.clone();
        }
        let old = match name {
            "object" | "self" => false,
            "oldObject" | "oldSelf" => true,
            "variables" => return Found { is_variables: true, ..Found::default() },
            // Names of types denote themselves.
            _ => {
                self.reads.others.insert(name.to_owned());
                return Found::default();
            }
        };
        let path = self.names.node.clone().unwrap_or_default();
        Found { places: vec![Place { old, path }], ..Found::default() }
    }

    fn select(
        &mut self,
        ast: &Ast,
        (operand, field, test): (ExprId, &str, bool),
        scope: &mut Scope,
    ) -> Found {
        if field == "userInfo" && matches!(ast.expr(operand), Expr::Ident(name) if &**name == "request") {
            self.reads.user = true;
        }
        let of = self.value(ast, operand, scope);
        if of.is_variables {
            return self.variable(field);
        }
        let found = of.below(field);
        if test {
            self.reads.tests.extend(found.places);
            return Found::default();
        }
        found
    }

    fn variable(&mut self, name: &str) -> Found {
        let names = self.names;
        match names.variables.get(name) {
            Some(ast) if self.depth < DEPTH => {
                self.depth = self.depth.saturating_add(1);
                let found = self.value(ast, ast.root(), &mut Vec::new());
                self.depth = self.depth.saturating_sub(1);
                found
            }
            _ => {
                self.reads.others.insert(format!("variables.{name}"));
                Found::default()
            }
        }
    }

    fn call(
        &mut self,
        ast: &Ast,
        function: &str,
        (target, args): (Option<ExprId>, &[ExprId]),
        scope: &mut Scope,
    ) -> Found {
        let found: Vec<Found> = target.iter().chain(args).map(|part| self.value(ast, *part, scope)).collect();
        match (function, found.as_slice()) {
            ("_?_:_", [condition, yes, no]) => {
                self.consume(condition);
                yes.clone().and(no.clone())
            }
            ("_+_", [left, right]) if !left.places.is_empty() || !right.places.is_empty() => {
                left.clone().and(right.clone())
            }
            ("_[_]" | "_[?_]" | "_?._", [of, key]) => self.index(of, key),
            ("_==_" | "_!=_" | "@in", [left, right]) => {
                self.compare(function, left, right);
                Found::default()
            }
            ("_&&_" | "_||_" | "!_" | "@not_strictly_false", parts) => {
                parts.iter().for_each(|part| self.consume(part));
                Found::default()
            }
            (function, parts) => {
                if function == "split" {
                    let texts =
                        parts.iter().skip(1).flat_map(|part| &part.constants).filter_map(Value::as_str);
                    self.reads.separators.extend(texts.map(ToOwned::to_owned));
                }
                parts.iter().for_each(|part| self.consume(part));
                if let ("_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) = (function, parts) {
                    self.compare(function, left, right);
                }
                // The result of a call may be compared with the same constants as its arguments.
                Found { places: Vec::new(), ..parts.iter().cloned().fold(Found::default(), Found::and) }
            }
        }
    }

    fn index(&mut self, of: &Found, key: &Found) -> Found {
        if of.places.is_empty() {
            // For a constant map, its keys are what the key is compared with.
            self.compare("@in", key, of);
            return Found { places: Vec::new(), ..of.clone() };
        }
        match (key.places.as_slice(), key.constants.as_slice()) {
            ([], [Value::String(name)]) => of.below(name),
            _ => {
                self.consume(key);
                of.below(EACH)
            }
        }
    }

    fn compare(&mut self, function: &str, left: &Found, right: &Found) {
        let is_null = |found: &Found| found.places.is_empty() && found.constants == [Value::Null];
        if is_null(left) || is_null(right) {
            self.reads.tests.extend(left.places.iter().chain(&right.places).cloned());
            return;
        }
        if let ("@in", [], [Value::String(key)]) =
            (function, left.places.as_slice(), left.constants.as_slice())
            && !right.places.is_empty()
        {
            // A key of a map, or an element of a list: of the list all counts.
            let is_map = |place: &Place| matches!(place.path.as_slice(), [.., parent, last] if parent == "metadata" && (last == "annotations" || last == "labels"));
            self.reads.tests.extend(right.below(key).places);
            if !right.places.iter().all(is_map) {
                self.reads.tests.extend(right.below(EACH).places);
            }
            return;
        }
        for (one, other) in [(left, right), (right, left)] {
            for place in &one.places {
                other.constants.iter().for_each(|constant| self.reads.compare(&place.path, constant));
            }
        }
        self.consume(left);
        self.consume(right);
    }

    fn fold(&mut self, ast: &Ast, fold: &Comprehension, scope: &mut Scope) -> Found {
        let range = self.value(ast, fold.range, scope);
        let each = Found { constants: range.constants.clone(), ..range.below(EACH) };
        // The number of elements always matters.
        self.reads.tests.extend(each.places.iter().cloned());
        let depth = scope.len();
        let init = self.value(ast, fold.accu_init, scope);
        match &fold.iter_var2 {
            Some(second) => {
                scope.push((fold.iter_var.clone(), Found::default()));
                scope.push((second.clone(), each));
            }
            None => scope.push((fold.iter_var.clone(), each)),
        }
        scope.push((fold.accu_var.clone(), init.clone()));
        let condition = self.value(ast, fold.condition, scope);
        self.consume(&condition);
        let step = self.value(ast, fold.step, scope);
        scope.pop();
        scope.push((fold.accu_var.clone(), init.and(step)));
        let result = self.value(ast, fold.result, scope);
        scope.truncate(depth);
        result
    }
}

/// Returns the value of a literal, if JSON can represent it.
pub(crate) fn constant(literal: &Literal) -> Option<Value> {
    Some(match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => json!(value),
        Literal::Int(value) => json!(value),
        Literal::Uint(value) => json!(value),
        Literal::Double(value) => json!(value),
        Literal::String(text) => json!(text),
        Literal::Bytes(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(text: &str) -> Reads {
        let variables = [
            ("ns", "has(object.status) && has(object.status.state) ? object.status.state : ''"),
            ("os", "has(oldObject.status.state) ? oldObject.status.state : ''"),
            ("ready", "object.status.conditions.filter(c, c.type == 'Ready')"),
            ("next", "{'A': ['B'], 'B': []}"),
        ];
        let variables =
            variables.into_iter().map(|(name, text)| (name.to_owned(), parsed(text).unwrap())).collect();
        of(&parsed(text).unwrap(), &Names { node: None, variables })
    }

    fn both(text: &str) -> Vec<String> {
        reads(text).in_both().map(|path| path.join(".")).collect()
    }

    #[test]
    fn values_of_the_new_and_the_old_object_are_found_through_variables() {
        assert_eq!(both("variables.os != 'Done' || variables.ns == variables.os"), ["status.state"]);
        assert_eq!(both("variables.ns in variables.next[variables.os]"), ["status.state"]);
        assert_eq!(both("object.spec == oldObject.spec"), ["spec"]);
        assert!(both("has(oldObject.status) && object.status.state == 'A'").is_empty());
        let reads = reads("variables.os != 'Done' || variables.ns == variables.os");
        assert_eq!(
            reads.compared[&vec!["status".to_owned(), "state".to_owned()]],
            [json!("Done"), json!("")]
        );
    }

    #[test]
    fn elements_of_lists_are_found_behind_macros() {
        let places = reads("variables.ready[0].status == 'True' && params.x.split(',').size() > 0");
        assert!(places.paths().any(|path| path.join(".") == "status.conditions.[].status"), "{places:?}");
        assert_eq!(places.separators.iter().collect::<Vec<_>>(), [","]);
        assert!(places.others.contains("params"));
    }

    #[test]
    fn presence_is_no_value() {
        let found = reads("oldObject == null || 'a/b' in object.metadata.annotations");
        assert!(found.values.is_empty(), "{found:?}");
        assert!(found.tests.iter().any(|place| place.path == ["metadata", "annotations", "a/b"]));
        assert!(reads("request.userInfo.username == 'a'").user);
    }
}
