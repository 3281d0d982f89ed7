//! Decides without a solver whether removing a `has()` makes no difference: assumes the field present, then absent, and compares the
//! simplified expression trees.
//!
//! It is exact: simplification keeps value and error; `&&` and `||` ignore an error where the other operand decides. Different trees
//! may still be equivalent; then nothing is known.

use admit_cel::Span;
use admit_cel::syntax::{Ast, Expr, ExprId, Literal};
use serde_json::Value;

use super::mutant::{Mutant, Operator};
use super::subject::text;
use crate::reads::parsed;

/// The maximum depth of expressions and variables, and the maximum size of a rule with variables inlined.
const DEEPEST: usize = 200;
const MOST_PARTS: usize = 50_000;
/// The maximum number of variables of a policy that may refer to each other.
const MOST_VARIABLES: usize = 32;

/// Reports whether a mutant denies exactly the same requests; false means unknown.
pub(super) fn is_same(document: &Value, changed: &Value, mutant: &Mutant) -> bool {
    decided(document, changed, mutant).unwrap_or_default()
}

fn decided(document: &Value, changed: &Value, mutant: &Mutant) -> Option<bool> {
    if mutant.operator != Operator::Presence || text(document, "/kind") != "ValidatingAdmissionPolicy" {
        return None;
    }
    let whole = parsed(document.pointer(&mutant.pointer)?.as_str()?)?;
    let (root, field) = tested(&whole, mutant.span?)?;
    if !is_always_there(document, root) {
        return None;
    }
    for truth in [true, false] {
        let known = Known { root, field, truth };
        if Rules::of(document, &known)? != Rules::of(changed, &known)? {
            return Some(false);
        }
    }
    Some(true)
}

/// Returns what the `has()` at a span tests: `object` or `oldObject`, and the field.
fn tested(ast: &Ast, span: Span) -> Option<(&str, &str)> {
    let mut open = vec![ast.root()];
    while let Some(id) = open.pop() {
        if let Expr::Select { operand, field, test_only: true } = ast.expr(id)
            && span.start <= ast.span(id).start
            && ast.span(id).end <= span.end
            && let Expr::Ident(root) = ast.expr(*operand)
        {
            return matches!(&**root, "object" | "oldObject").then_some((&**root, &**field));
        }
        open.extend(below(ast.expr(id)));
    }
    None
}

/// Reports whether every matched request has that object: then the test cannot fail.
fn is_always_there(document: &Value, root: &str) -> bool {
    let with: &[&str] = if root == "object" { &["CREATE", "UPDATE"] } else { &["UPDATE"] };
    let rules = document.pointer("/spec/matchConstraints/resourceRules").and_then(Value::as_array);
    let is_with = |rule: &Value| {
        let operations = rule.get("operations").and_then(Value::as_array);
        operations.is_some_and(|all| {
            !all.is_empty() && all.iter().all(|one| one.as_str().is_some_and(|one| with.contains(&one)))
        })
    };
    rules.is_some_and(|rules| !rules.is_empty() && rules.iter().all(is_with))
}

fn below(expr: &Expr) -> Vec<ExprId> {
    match expr {
        Expr::Literal(_) | Expr::Ident(_) => Vec::new(),
        Expr::Select { operand, .. } => vec![*operand],
        Expr::Call { target, args, .. } => target.iter().chain(args).copied().collect(),
        Expr::List { elements, .. } => elements.to_vec(),
        Expr::Map(entries) | Expr::Struct { entries, .. } => {
            entries.iter().flat_map(|entry| [entry.key, entry.value]).collect()
        }
        Expr::Comprehension(fold) => {
            vec![fold.range, fold.accu_init, fold.condition, fold.step, fold.result]
        }
    }
}

/// The assumption about a `has()` test.
struct Known<'k> {
    root: &'k str,
    field: &'k str,
    truth: bool,
}

/// The simplified match conditions and validations.
#[derive(Debug, PartialEq)]
struct Rules(Vec<Tree>);

/// A simplified expression.
#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Constant(Literal),
    Of(String, Vec<Self>),
}

impl Rules {
    /// Simplifies a policy; `None` if something is unsupported.
    fn of(document: &Value, known: &Known<'_>) -> Option<Self> {
        let items = |list: &str| {
            document.pointer(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
        };
        let variables = items("/spec/variables");
        let variables: Vec<(&str, Ast)> = variables
            .iter()
            .map(|variable| Some((variable.get("name")?.as_str()?, parsed(text(variable, "/expression"))?)))
            .collect::<Option<_>>()?;
        let mut trees = Vec::new();
        let rules = items("/spec/matchConditions").iter().chain(items("/spec/validations"));
        for rule in rules {
            let ast = parsed(text(rule, "/expression"))?;
            let mut folding = Folding { known, variables: &variables, within: 0, parts: 0 };
            trees.push(folding.tree(&ast, ast.root(), 0)?);
        }
        Some(Self(trees))
    }
}

struct Folding<'f> {
    known: &'f Known<'f>,
    variables: &'f [(&'f str, Ast)],
    /// How many variables are being inlined at the moment.
    within: usize,
    parts: usize,
}

impl Folding<'_> {
    fn tree(&mut self, ast: &Ast, id: ExprId, depth: usize) -> Option<Tree> {
        self.parts = self.parts.saturating_add(1);
        if depth > DEEPEST || self.parts > MOST_PARTS {
            return None;
        }
        let deeper = depth.saturating_add(1);
        match ast.expr(id) {
            Expr::Literal(literal) => Some(Tree::Constant(literal.clone())),
            Expr::Ident(name) => Some(Tree::Of(format!("name {name}"), Vec::new())),
            Expr::Select { operand, field, test_only } => {
                if let Expr::Ident(name) = ast.expr(*operand) {
                    if &**name == "variables" {
                        return if *test_only { None } else { self.variable(field, deeper) };
                    }
                    if *test_only && &**name == self.known.root && &**field == self.known.field {
                        return Some(Tree::Constant(Literal::Bool(self.known.truth)));
                    }
                }
                let of = self.tree(ast, *operand, deeper)?;
                Some(Tree::Of(format!("{} {field}", if *test_only { "has" } else { "." }), vec![of]))
            }
            Expr::Call { function, target, args } => {
                let own = target.is_some();
                let all = target.iter().chain(args).map(|id| self.tree(ast, *id, deeper));
                Some(folded(function, own, all.collect::<Option<_>>()?))
            }
            Expr::List { elements, optional } => {
                let all = elements.iter().map(|id| self.tree(ast, *id, deeper));
                Some(Tree::Of(format!("list {optional:?}"), all.collect::<Option<_>>()?))
            }
            Expr::Map(entries) => {
                let optional: Vec<bool> = entries.iter().map(|entry| entry.optional).collect();
                let all = entries.iter().flat_map(|entry| [entry.key, entry.value]);
                let all = all.map(|id| self.tree(ast, id, deeper)).collect::<Option<_>>()?;
                Some(Tree::Of(format!("map {optional:?}"), all))
            }
            Expr::Struct { .. } => None,
            Expr::Comprehension(fold) => {
                let bound = [Some(&*fold.iter_var), fold.iter_var2.as_deref(), Some(&*fold.accu_var)];
                // The macro variable shadows none of the known names.
                let hides = |name: &str| name == self.known.root || name == "variables";
                if bound.into_iter().flatten().any(hides) {
                    return None;
                }
                let all = [fold.range, fold.accu_init, fold.condition, fold.step, fold.result];
                let all = all.map(|id| self.tree(ast, id, deeper)).into_iter().collect::<Option<_>>()?;
                Some(Tree::Of(format!("fold {bound:?}"), all))
            }
        }
    }

    /// Inlines a variable; of two with one name the later one counts.
    fn variable(&mut self, name: &str, depth: usize) -> Option<Tree> {
        let variables = self.variables;
        let (_, ast) = variables.iter().rfind(|(known, _)| *known == name)?;
        if self.within >= MOST_VARIABLES {
            return None;
        }
        self.within = self.within.saturating_add(1);
        let tree = self.tree(ast, ast.root(), depth);
        self.within = self.within.saturating_sub(1);
        tree
    }
}

fn folded(function: &str, own: bool, args: Vec<Tree>) -> Tree {
    let truth = |tree: &Tree| match tree {
        Tree::Constant(Literal::Bool(truth)) => Some(*truth),
        Tree::Constant(_) | Tree::Of(..) => None,
    };
    let constant = |truth| Tree::Constant(Literal::Bool(truth));
    match (function, args.as_slice()) {
        ("_&&_" | "_||_", _) => chain(function, args),
        ("!_", [one]) if truth(one).is_some() => constant(truth(one) != Some(true)),
        ("_?_:_", [condition, yes, no]) => match truth(condition) {
            Some(true) => yes.clone(),
            Some(false) => no.clone(),
            None => Tree::Of(function.to_owned(), args),
        },
        ("_==_" | "_!=_", [Tree::Constant(one), Tree::Constant(other)]) if is_alike(one, other) => {
            constant((one == other) == (function == "_==_"))
        }
        ("size", [Tree::Of(name, items)]) if items.is_empty() && name.starts_with("list ") => {
            Tree::Constant(Literal::Int(0))
        }
        _ => Tree::Of(format!("{function} {own}"), args),
    }
}

/// Reports whether two constants of one type are equal.
fn is_alike(one: &Literal, other: &Literal) -> bool {
    matches!(
        (one, other),
        (Literal::Bool(_), Literal::Bool(_))
            | (Literal::Int(_), Literal::Int(_))
            | (Literal::String(_), Literal::String(_))
    )
}

/// Normalises nested `&&` and `||`: an operand that decides does so whatever the others are, even errors.
fn chain(function: &str, args: Vec<Tree>) -> Tree {
    let decides = Tree::Constant(Literal::Bool(function == "_||_"));
    let says_nothing = Tree::Constant(Literal::Bool(function != "_||_"));
    let mut parts = Vec::new();
    for arg in args {
        match arg {
            Tree::Of(name, more) if name == function => parts.extend(more),
            other => parts.push(other),
        }
    }
    if parts.contains(&decides) {
        return decides;
    }
    let mut left: Vec<Tree> = parts.iter().filter(|part| **part != says_nothing).cloned().collect();
    match left.len() {
        0 => says_nothing,
        // An operand that is not a boolean fails in the chain, but not alone.
        1 if left.first().is_some_and(is_truth) => left.swap_remove(0),
        1 => Tree::Of(function.to_owned(), parts),
        _ => Tree::Of(function.to_owned(), left),
    }
}

/// Reports whether an expression is a boolean or fails.
fn is_truth(tree: &Tree) -> bool {
    const TRUTHS: [&str; 11] = [
        "_&&_",
        "_||_",
        "_==_ false",
        "_!=_ false",
        "_<_ false",
        "_<=_ false",
        "_>_ false",
        "_>=_ false",
        "!_ false",
        "@in false",
        "matches true",
    ];
    match tree {
        Tree::Constant(literal) => matches!(literal, Literal::Bool(_)),
        Tree::Of(name, _) => name.starts_with("has ") || TRUTHS.contains(&name.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::mutants;
    use super::*;

    fn policy(operations: &[&str], variable: &str, rule: &str) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "a"},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": operations, "resources": ["cats"],
                }]},
                "variables": [{"name": "v", "expression": variable}],
                "validations": [{"expression": rule}],
            },
        })
    }

    /// Reports whether removing the first `has()` of the variable is known to be equivalent.
    fn is_known(operations: &[&str], variable: &str, rule: &str) -> bool {
        let document = policy(operations, variable, rule);
        let all = mutants(&document).expect("a policy that compiles");
        let mutant = all
            .iter()
            .find(|mutant| mutant.operator == Operator::Presence && mutant.field.contains("variables"));
        let mutant = mutant.expect("a test in the variable");
        is_same(&document, &mutant.of(&document), mutant)
    }

    const STATE: &str = "has(object.status) && has(object.status.state) ? object.status.state : ''";

    #[test]
    fn a_test_that_comes_too_late_makes_no_difference() {
        let both = ["CREATE", "UPDATE"];
        for rule in [
            "!has(object.status) || variables.v != 'lost'",
            "has(object.status) ? variables.v != 'lost' : true",
            // The other operand decides, so the error is ignored.
            "variables.v != 'lost' || !has(object.status)",
            "(has(object.status) && object.status.size > 1) || !has(object.status) || variables.v == ''",
        ] {
            assert!(is_known(&both, STATE, rule), "{rule}");
        }
        let listed =
            "has(object.status) && has(object.status.list) ? object.status.list.filter(c, c > 1) : []";
        assert!(is_known(&both, listed, "!has(object.status) || size(variables.v) == 0"));
    }

    #[test]
    fn nothing_is_said_where_it_may_make_a_difference() {
        let both = ["CREATE", "UPDATE"];
        for rule in [
            "variables.v != 'lost'",
            "has(object.status) || variables.v != 'lost'",
            "!has(object.spec) || variables.v != 'lost'",
        ] {
            assert!(!is_known(&both, STATE, rule), "{rule}");
        }
        let rule = "!has(object.status) || variables.v != 'lost'";
        // Without an object the test fails.
        for operations in [&["CREATE", "DELETE"][..], &["*"], &["CONNECT"]] {
            assert!(!is_known(operations, STATE, rule), "{operations:?}");
        }
        let old = STATE.replace("object", "oldObject");
        let rule = rule.replace("object", "oldObject");
        assert!(is_known(&["UPDATE"], &old, &rule) && !is_known(&both, &old, &rule));
        // A shadowed name is not known.
        let hidden =
            "has(object.status) && has(object.status.state) && [1].all(object, object > 0) ? 'a' : ''";
        assert!(!is_known(&both, hidden, "!has(object.status) || variables.v != 'lost'"));
    }
}
