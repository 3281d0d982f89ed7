//! Finds the atoms that an expression over an object depends on, and lists whose entries have unique keys.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use admit_cel::syntax::{Ast, Expr, ExprId};
use admit_policy::UserInfo;
use admit_policy::init;
use admit_policy::schema::{Schema, SchemaType};
use serde_json::{Value, json};

use super::atoms::{Atom, AtomKind};
use super::expression::Expression;
use super::field::{FieldPath, Step};
use super::judge::Judge;
use super::local::{Around, Ground, Local, Wanted, What};
use super::picture::Limit;
use super::rules::{Rule, RulePlace};
use super::scalar::{Part, Spot};
use super::values::{at, compared, listed, may_be_null, others, pattern};

/// Lists whose entries have unique keys: the path of the list, and the key.
pub(super) type Unique = Vec<(Vec<Step>, String)>;

/// With more atoms, there are too many combinations in any case.
const MOST_ATOMS: usize = 16;

/// Finds the atoms that decide the value of the expression.
pub(super) fn atoms_of(
    expression: &Expression,
    judge: &Judge<'_>,
    rules: &[Rule],
    (unique, given): (&[(Vec<Step>, String)], &[&Value]),
) -> Result<Vec<Atom>, Limit> {
    let schema = judge.definition().map(|(_, version)| version.schema());
    let none = BTreeMap::new();
    let around = Around { node: Vec::new(), variables: &none, schema, unique };
    let local = Local::new(around, Ground::Anything(RefCell::default()));
    if !local.is_exact(&expression.written) {
        return Err(Limit::Reads);
    }
    let Ground::Anything(wanted) = local.ground else { return Err(Limit::Reads) };
    let wanted = wanted.into_inner();
    if wanted.len() > MOST_ATOMS.saturating_mul(4) {
        return Err(Limit::Combinations { fields: wanted.len(), most: super::space::MOST_COMBINATIONS });
    }
    let mut atoms = Vec::new();
    for one in &wanted {
        let is_told = one.what == What::Presence
            && wanted.iter().any(|other| other != one && other.path.is_within(&one.path.0));
        if !is_told {
            atoms.push(atom(one, expression, (schema, rules), given).ok_or(Limit::Reads)?);
        }
    }
    Ok(atoms)
}

fn atom(
    wanted: &Wanted,
    expression: &Expression,
    (schema, rules): (Option<&Schema>, &[Rule]),
    given: &[&Value],
) -> Option<Atom> {
    let path = wanted.path.clone();
    let pattern = pattern(&path);
    let own = schema.and_then(|schema| at(schema, &pattern));
    if may_be_null(schema, &pattern) {
        return None;
    }
    let kind = match &wanted.what {
        What::Member(item) => AtomKind::Member(json!(item)),
        What::Presence => AtomKind::Presence(own.map_or_else(|| json!("there"), init::sample)),
        What::Value => {
            let values = own.map(listed).unwrap_or_default();
            if values.is_empty() {
                let is_text = own.is_none_or(|own| own.is_type(&SchemaType::String) && !own.int_or_string);
                let is_free = own.is_none_or(|own| own.checks.format.is_none());
                let mut named = compared(rules, &pattern);
                named.extend(expression.reads.compared.get(&pattern).into_iter().flatten().cloned());
                named.retain(Value::is_string);
                named.sort_by_key(ToString::to_string);
                named.dedup();
                (is_text && is_free).then(|| {
                    let others = others(&named, &path, given.iter().copied());
                    AtomKind::Text { named, others }
                })?
            } else {
                AtomKind::Values(values)
            }
        }
    };
    Some(Atom { path, kind })
}

/// Finds the lists whose keys rules force to be unique.
pub(super) fn unique(judge: &Judge<'_>, rules: &[Rule], base: &Value) -> Unique {
    let schema = judge.definition().map(|(_, version)| version.schema());
    let mut found: Unique = Vec::new();
    for rule in rules.iter().filter(|rule| !rule.selects && rule.written.conditions.is_empty()) {
        let node = match &rule.place {
            RulePlace::Node { path, .. } if path.iter().any(|name| name == crate::reads::EACH) => continue,
            RulePlace::Node { path, .. } => path.iter().cloned().map(Step::Name).collect(),
            RulePlace::Validation(_) => Vec::new(),
        };
        let around = Around { node, variables: &rule.written.variables, schema, unique: &[] };
        let local = Local::new(around, Ground::Anything(RefCell::default()));
        for part in rule.written.parts() {
            let Some((list, key)) = told_apart(&local, &rule.written.rule, part) else { continue };
            let is_new = !found.iter().any(|(own, by)| *own == list && *by == key);
            if is_new && refuses_two(judge, rule, (&list, &key), base) {
                found.push((list, key));
            }
        }
    }
    found
}

/// Matches `list.all(a, list.exists_one(b, b.key == a.key))`; returns the list and the key.
fn told_apart<'a>(local: &Local<'a>, ast: &'a Ast, id: ExprId) -> Option<(Vec<Step>, String)> {
    let (outer, outer_list, a, body) = macro_of(ast, id)?;
    let (inner, inner_list, b, condition) = macro_of(ast, body)?;
    let (one, other) = (list_of(local, ast, outer_list)?, list_of(local, ast, inner_list)?);
    let is_idiom = outer == "all" && matches!(inner, "exists_one" | "existsOne") && a != b;
    if !is_idiom || one != other || one.old {
        return None;
    }
    let Expr::Call { function, target: None, args } = ast.expr(condition) else { return None };
    let ("_==_", [left, right]) = (&**function, &**args) else { return None };
    let field = |id: ExprId| match ast.expr(id) {
        Expr::Select { operand, field, .. } => match ast.expr(*operand) {
            Expr::Ident(name) => Some((&**name, &**field)),
            _ => None,
        },
        _ => None,
    };
    let ((of, key), (with, by)) = (field(*left)?, field(*right)?);
    let is_pair = (of == a && with == b) || (of == b && with == a);
    (is_pair && key == by).then(|| (one.path, key.to_owned()))
}

fn macro_of(ast: &Ast, id: ExprId) -> Option<(&str, ExprId, &str, ExprId)> {
    let Expr::Call { function, target: Some(target), args } = ast.expr(id) else { return None };
    let [variable, body] = &**args else { return None };
    let Expr::Ident(variable) = ast.expr(*variable) else { return None };
    Some((function, *target, variable, *body))
}

/// Returns the path of a list expression, which may default to an empty list.
fn list_of<'a>(local: &Local<'a>, ast: &'a Ast, id: ExprId) -> Option<Spot> {
    fn spots(part: Part<'_>, found: &mut Vec<Spot>) -> bool {
        match part {
            Part::Spot(spot) => {
                found.push(spot);
                true
            }
            Part::Constant(Value::Array(items)) => items.is_empty(),
            Part::OneOf(parts) => parts.into_iter().all(|part| spots(part, found)),
            _ => false,
        }
    }
    let mut found = Vec::new();
    let is_list = spots(local.part(ast, id, &Vec::new()), &mut found);
    found.dedup();
    found.pop().filter(|_| is_list && found.is_empty())
}

/// Checks that the rule refuses two entries with one key, on creation and on update.
fn refuses_two(judge: &Judge<'_>, rule: &Rule, (list, key): (&[Step], &str), base: &Value) -> bool {
    let schema = judge.definition().map(|(_, version)| version.schema());
    let filled = |steps: &[Step]| {
        let own = schema.and_then(|schema| at(schema, &super::values::pattern_of(steps)));
        own.map_or(Value::Null, init::sample)
    };
    let entry = Step::Entry { key: key.to_owned(), value: "one".to_owned() };
    let path = FieldPath(list.iter().cloned().chain([entry, Step::Name(key.to_owned())]).collect());
    let mut twice = base.clone();
    path.set(&mut twice, json!("one"), &filled);
    let list = FieldPath(list.to_vec());
    let mut items = list.get(&twice).and_then(Value::as_array).cloned().unwrap_or_default();
    items.extend(items.last().cloned());
    list.set(&mut twice, Value::Array(items), &filled);
    let user = UserInfo::default();
    let says = |old: Option<&Value>| {
        let trial = judge.write(old, &twice, &user);
        trial.objections.iter().any(|objection| rule.says(objection))
    };
    // A creation does not write the status.
    says(Some(base)) && (judge.status || says(None))
}

/// Returns the paths that an expression reads, so that a schema can be checked for them.
pub(super) fn read_paths(expression: &Expression) -> BTreeSet<Vec<String>> {
    expression.reads.paths().filter(|path| !path.is_empty()).cloned().collect()
}
