//! Finds the rules whose verdict depends only on the atoms of an object ([`super::local`]).

use admit_cel::syntax::ExprId;
use admit_policy::schema::Schema;

use super::atoms::Atom;
use super::expression::Expression;
use super::field::Step;
use super::local::{Around, Ground, Local};
use super::looks::Unique;
use super::rules::{Rule, RulePlace};
use super::scalar::{Spot, Truth};
use crate::reads::EACH;

/// The rules whose refusal is certain.
pub(super) struct Eligible<'a> {
    /// Indices of rules that refuse an object if they refuse its atoms.
    pub(super) own: Vec<usize>,
    /// Conjuncts of other rules with that property, with the index of the rule.
    pub(super) parts: Vec<(usize, String)>,
    /// By rule: whether the verdict is exactly the same.
    exact: Vec<bool>,
    rules: &'a [Rule],
}

/// Finds the rules, and conjuncts of rules, that the atoms decide.
pub(super) fn eligible<'a>(
    rules: &'a [Rule],
    atoms: &'a [Atom],
    schema: Option<&'a Schema>,
    unique: &'a Unique,
) -> Eligible<'a> {
    let (mut own, mut parts, mut exact) = (Vec::new(), Vec::new(), Vec::new());
    for (index, rule) in rules.iter().enumerate() {
        let asked = Asked { rule, atoms, schema, unique };
        let whole = asked.truth(rule.written.rule.root());
        exact.push(whole.exact);
        if !asked.applies() {
            continue;
        }
        // If a failing rule admits the object, the result must be exactly the same.
        let refuses = |truth: Truth| {
            if rule.written.ignores_failure { truth.exact } else { truth.refusal }
        };
        if refuses(whole) {
            own.push(index);
            continue;
        }
        let several = rule.written.parts();
        let decided = several.iter().filter(|part| several.len() > 1 && refuses(asked.truth(**part)));
        parts.extend(decided.map(|part| (index, rule.written.rule.span(*part).of(&rule.text).to_owned())));
    }
    Eligible { own, parts, exact, rules }
}

/// Reports whether the atoms decide the value of the expression.
pub(super) fn is_decided(
    expression: &Expression,
    atoms: &[Atom],
    schema: Option<&Schema>,
    unique: &Unique,
) -> bool {
    let none = std::collections::BTreeMap::new();
    let around = Around { node: Vec::new(), variables: &none, schema, unique };
    Local::new(around, Ground::Atoms(atoms)).is_exact(&expression.written)
}

impl Eligible<'_> {
    /// Reports whether the atoms decide every rule that may refuse a change of only these fields.
    ///
    /// A rule that reads neither these fields nor the old object gives the same verdict as before.
    pub(super) fn is_complete(&self, status: bool, fields: &[Vec<String>]) -> bool {
        let is_asked = |rule: &Rule| if status { rule.requests.status } else { rule.requests.main };
        let is_concerned = |rule: &Rule| {
            let is_old = rule.reads.values.iter().chain(&rule.reads.tests).any(|place| place.old);
            is_old || rule.reads.user || rule.speaks_of(fields)
        };
        let mut all = self.rules.iter().zip(&self.exact);
        all.all(|(rule, exact)| *exact || !is_asked(rule) || !is_concerned(rule))
    }
}

struct Asked<'a> {
    rule: &'a Rule,
    atoms: &'a [Atom],
    schema: Option<&'a Schema>,
    unique: &'a Unique,
}

impl<'a> Asked<'a> {
    /// Reports whether the rule applies to every object, or the atoms decide to which.
    fn applies(&self) -> bool {
        let local = self.local(Vec::new());
        !self.rule.selects && self.rule.written.conditions.iter().all(|ast| local.is_exact(ast))
    }

    fn truth(&self, id: ExprId) -> Truth {
        let path = match &self.rule.place {
            RulePlace::Validation(_) => &[] as &[String],
            RulePlace::Node { path, .. } => path,
        };
        let nodes = self.nodes(path);
        let all = nodes.iter().map(|node| {
            let local = self.local(node.clone());
            // A rule is not evaluated where its node is absent.
            let is_known = local.presence(&Spot { old: false, path: node.clone() });
            if is_known { local.truth(&self.rule.written.rule, id) } else { Truth::NONE }
        });
        let truth = all.fold(Truth::EXACT, Truth::and);
        let is_each = path.iter().any(|name| name == EACH);
        match nodes.is_empty() {
            true => Truth::NONE,
            // The rule also applies to other elements.
            false => Truth { exact: truth.exact && !is_each, ..truth },
        }
    }

    fn local(&self, node: Vec<Step>) -> Local<'a> {
        let around = Around {
            node,
            variables: &self.rule.written.variables,
            schema: self.schema,
            unique: self.unique,
        };
        Local::new(around, Ground::Atoms(self.atoms))
    }

    /// Returns the paths of a schema node in the list entries that contain atoms.
    fn nodes(&self, path: &[String]) -> Vec<Vec<Step>> {
        let mut nodes: Vec<Vec<Step>> = vec![Vec::new()];
        for name in path {
            let mut next = Vec::new();
            for node in nodes {
                if name != EACH {
                    next.push(node.into_iter().chain([Step::Name(name.clone())]).collect());
                    continue;
                }
                let Some((key, values)) = self.local(Vec::new()).entries(&node) else { continue };
                next.extend(values.into_iter().map(|value| {
                    node.iter().cloned().chain([Step::Entry { key: key.clone(), value }]).collect()
                }));
            }
            nodes = next;
        }
        nodes
    }
}
