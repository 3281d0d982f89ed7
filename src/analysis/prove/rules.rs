//! What rules say of an object that may be any, as terms.

use std::rc::Rc;

use admit_cel::syntax::Ast;
use admit_policy::crd::rules::{RuleEnv, decl_type};
use admit_policy::schema::{ListType, Schema};

use super::document::{Form, NodeId, World};
use super::eval::{Evaluator, OPERATION, Scope};
use super::side::{Clause, DefinitionRules, PolicyRules, Rules};
use super::term::Term;
use super::value::{Outcome, Value, without_null};
use super::view::View;
use super::{Undecided, undecided};

/// What a side says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ruling {
    pub(super) denied: Term,
    pub(super) failed: Term,
}

/// The objects of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objects {
    pub(super) new: NodeId,
    pub(super) old: Option<NodeId>,
}

/// What one rule says where it is asked.
struct Verdict {
    asked: Term,
    error: Term,
    holds: Term,
}

/// Where rules are asked: a node of the schema and the objects' nodes there.
struct Place<'r> {
    schema: &'r Schema,
    /// The path of the schema.
    path: String,
    is_root: bool,
    node: NodeId,
    old: Old,
}

/// The old value that belongs to a node.
#[derive(Clone, Copy)]
enum Old {
    None,
    Node(NodeId),
    /// There may be one, and it is not followed which.
    Somewhere,
}

/// What the rules of a side say; fails with all that cannot be followed.
pub(super) fn ruling(
    world: &mut World<'_>,
    rules: &Rules,
    objects: Objects,
    side: usize,
) -> Result<Ruling, Vec<Undecided>> {
    match rules {
        Rules::Definition(rules) => of_definition(world, rules, objects, side),
        Rules::Policy(rules) => of_policy(world, rules, objects, side),
    }
}

/// Whether some expression looks at what was there before.
pub(super) fn looks_back(rules: &Rules) -> bool {
    match rules {
        Rules::Definition(rules) => any_rule(&rules.schema, &|rule| rule.contains("oldSelf")),
        Rules::Policy(rules) => rules.operations.contains(&admit_policy::Operation::Update),
    }
}

fn any_rule(schema: &Schema, is_it: &dyn Fn(&str) -> bool) -> bool {
    let below = schema.properties.values().chain(schema.items.as_deref()).chain(schema.additional_schema());
    schema.rules.iter().any(|rule| is_it(&rule.rule)) || below.into_iter().any(|child| any_rule(child, is_it))
}

/// Whether there are rules below `allOf`, which servers run beside others.
fn has_nested_rules(schema: &Schema) -> bool {
    let has = |part: &Schema| part.has_rules() || has_nested_rules(part);
    let below = schema.properties.values().chain(schema.items.as_deref()).chain(schema.additional_schema());
    schema.checks.all_of.iter().any(has) || below.into_iter().any(has_nested_rules)
}

fn of_definition(
    world: &mut World<'_>,
    rules: &DefinitionRules,
    objects: Objects,
    side: usize,
) -> Result<Ruling, Vec<Undecided>> {
    let mut walk = Walk { world, verdicts: Vec::new(), undecided: Vec::new(), side };
    let old = objects.old.map_or(Old::None, Old::Node);
    let place =
        Place { schema: &rules.schema, path: rules.place.clone(), is_root: true, node: objects.new, old };
    if has_nested_rules(&rules.schema) {
        walk.undecided.push(undecided("rules below `allOf`").of(side, &rules.place));
    }
    if let Err(undecided) = walk.node(&place) {
        walk.undecided.push(undecided.of(side, &rules.place));
    }
    let Walk { world, verdicts, undecided, .. } = walk;
    if !undecided.is_empty() {
        return Err(undecided);
    }
    let (mut denied, mut failed) = (Vec::new(), Vec::new());
    for Verdict { asked, error, holds } in verdicts {
        let broken = world.terms.not(holds);
        let wrong = world.terms.or(&[error, broken]);
        denied.push(world.terms.and(&[asked, wrong]));
        failed.push(world.terms.and(&[asked, error]));
    }
    Ok(Ruling { denied: world.terms.or(&denied), failed: world.terms.or(&failed) })
}

struct Walk<'w, 's> {
    world: &'w mut World<'s>,
    verdicts: Vec<Verdict>,
    undecided: Vec<Undecided>,
    side: usize,
}

impl Walk<'_, '_> {
    fn node(&mut self, place: &Place<'_>) -> Result<(), Undecided> {
        let schema = place.schema;
        if !schema.has_rules() {
            return Ok(());
        }
        self.own_rules(place)?;
        for (name, child) in &schema.properties {
            if !child.has_rules() {
                continue;
            }
            let path = format!("{}.properties[{name}]", place.path);
            let Some(node) = self.world.property(place.node, name)? else {
                return Err(undecided("rules of a field that is not followed").of(self.side, &path));
            };
            let old = match place.old {
                Old::Node(old) => self.world.property(old, name)?.map_or(Old::None, Old::Node),
                other => other,
            };
            self.node(&Place { schema: child, path, is_root: false, node, old })?;
        }
        if let Some(child) = schema.items.as_deref().filter(|child| child.has_rules()) {
            let path = format!("{}.items", place.path);
            let Form::List { items, .. } = self.world.force(place.node)? else {
                return Err(undecided("rules of a list that is not followed").of(self.side, &path));
            };
            // Items of other lists have no old ones.
            let old = match place.old {
                Old::None => Old::None,
                _ if schema.list_type == Some(ListType::Map) => Old::Somewhere,
                _ => Old::None,
            };
            for node in items {
                self.node(&Place { schema: child, path: path.clone(), is_root: false, node, old })?;
            }
        }
        if let Some(child) = schema.additional_schema().filter(|child| child.has_rules()) {
            let path = format!("{}.additionalProperties", place.path);
            let Form::Map { entries, .. } = self.world.force(place.node)? else {
                return Err(undecided("rules of a map that is not followed").of(self.side, &path));
            };
            let old = if matches!(place.old, Old::None) { Old::None } else { Old::Somewhere };
            for (_, node) in entries {
                self.node(&Place { schema: child, path: path.clone(), is_root: false, node, old })?;
            }
        }
        Ok(())
    }

    fn own_rules(&mut self, place: &Place<'_>) -> Result<(), Undecided> {
        if place.schema.rules.is_empty() {
            return Ok(());
        }
        let is_resource = place.is_root || place.schema.embedded_resource;
        let Some(decl) = decl_type(place.schema, is_resource) else {
            return Err(undecided("rules of untyped data").of(self.side, &place.path));
        };
        let env = RuleEnv::new(&decl);
        for (at, rule) in place.schema.rules.iter().enumerate() {
            let field = if place.path.starts_with("--") {
                place.path.clone()
            } else {
                format!("{}.x-kubernetes-validations[{at}].rule", place.path)
            };
            if rule.rule.trim().is_empty() {
                continue;
            }
            let checked = match env.checked(rule) {
                Ok(checked) => checked,
                Err(error) => {
                    self.undecided.push(undecided(error.to_string()).of(self.side, &field));
                    continue;
                }
            };
            let uses_old = checked.uses_variable("oldSelf");
            let is_optional = rule.optional_old_self == Some(true);
            match self.rule(place, checked.ast(), uses_old, is_optional) {
                Ok(Some(verdict)) => self.verdicts.push(verdict),
                Ok(None) => {}
                Err(undecided) => {
                    let undecided = undecided.of(self.side, &field);
                    if !self.undecided.contains(&undecided) {
                        self.undecided.push(undecided);
                    }
                }
            }
        }
        Ok(())
    }

    fn rule(
        &mut self,
        place: &Place<'_>,
        ast: &Ast,
        uses_old: bool,
        is_optional: bool,
    ) -> Result<Option<Verdict>, Undecided> {
        let mut asked = self.world.node(place.node)?.here;
        let mut scope = Scope::default();
        let (own, null) = (self.world.value_of(place.node)?, self.world.node(place.node)?.null);
        let own = self.world.good(without_null(own, null));
        scope.globals.insert("self", own);
        if uses_old {
            let old = match place.old {
                Old::Somewhere => return Err(undecided("`oldSelf` of an item that is found by its key")),
                Old::None if !is_optional => return Ok(None),
                Old::None => (self.world.terms.bool(false), Value::Null),
                Old::Node(old) => {
                    let value = self.world.value_of(old)?;
                    let node = self.world.node(old)?.clone();
                    (node.here, without_null(value, node.null))
                }
            };
            let (there, value) = old;
            let value = if is_optional {
                Value::Optional(there, Rc::new(value))
            } else {
                asked = self.world.terms.and(&[asked, there]);
                value
            };
            let value = self.world.good(value);
            scope.globals.insert("oldSelf", value);
        }
        if self.world.terms.known_bool(asked) == Some(false) {
            return Ok(None);
        }
        let outcome = Evaluator::new(self.world, &scope, ast).run()?;
        let (error, holds) = self.world.truth(&outcome)?;
        Ok(Some(Verdict { asked, error, holds }))
    }
}

fn of_policy(
    world: &mut World<'_>,
    rules: &PolicyRules,
    objects: Objects,
    side: usize,
) -> Result<Ruling, Vec<Undecided>> {
    let mut scope = Scope::default();
    let mut given = |world: &mut World<'_>, name: &'static str, node: Option<NodeId>| {
        let value = match node {
            Some(node) => world.value_of(node)?,
            None => Value::Null,
        };
        let outcome = world.good(value);
        scope.globals.insert(name, outcome);
        Ok(())
    };
    given(world, "object", Some(objects.new)).map_err(|undecided: Undecided| vec![undecided])?;
    given(world, "oldObject", objects.old).map_err(|undecided: Undecided| vec![undecided])?;
    let operation = world.terms.text(if objects.old.is_some() { "UPDATE" } else { "CREATE" });
    let operation = world.good(Value::Text(operation));
    scope.globals.insert(OPERATION, operation);
    scope.variables = rules.variables.iter().map(|clause| (clause.name.as_str(), clause.ast())).collect();
    let mut found = Vec::new();
    if let Some(what) = &rules.asks_more {
        found.push(undecided(what.clone()).of(side, "spec.matchConstraints"));
    }
    if rules.annotates {
        found.push(
            undecided("annotations for the audit log, which may fail").of(side, "spec.auditAnnotations"),
        );
    }
    let conditions = evaluated(world, &scope, &rules.conditions, side, &mut found);
    let validations = evaluated(world, &scope, &rules.validations, side, &mut found);
    if !found.is_empty() {
        return Err(found);
    }
    let terms = &mut world.terms;
    // A condition that is false counts before any that failed.
    let (mut refuses, mut fails) = (Vec::new(), Vec::new());
    for (error, holds) in conditions {
        let (good, no) = (terms.not(error), terms.not(holds));
        refuses.push(terms.and(&[good, no]));
        fails.push(error);
    }
    let skipped = terms.or(&refuses);
    let counts = terms.not(skipped);
    let fails = terms.or(&fails);
    let condition_failed = terms.and(&[counts, fails]);
    let works = terms.not(fails);
    let asked = terms.and(&[counts, works]);
    let (mut broken, mut failed) = (Vec::new(), Vec::new());
    for (error, holds) in validations {
        let (good, no) = (terms.not(error), terms.not(holds));
        broken.push(terms.and(&[asked, good, no]));
        failed.push(terms.and(&[asked, error]));
    }
    let broken = terms.or(&broken);
    failed.push(condition_failed);
    let failed = terms.or(&failed);
    let denied = if rules.ignores_errors { broken } else { terms.or(&[broken, failed]) };
    Ok(Ruling { denied, failed })
}

fn evaluated(
    world: &mut World<'_>,
    scope: &Scope<'_>,
    clauses: &[Clause],
    side: usize,
    undecided: &mut Vec<Undecided>,
) -> Vec<(Term, Term)> {
    let mut found = Vec::new();
    for clause in clauses {
        let outcome: Result<Outcome, Undecided> = Evaluator::new(world, scope, clause.ast()).run();
        match outcome.and_then(|outcome| world.truth(&outcome)) {
            Ok(truth) => found.push(truth),
            Err(error) => undecided.push(error.of(side, &clause.field)),
        }
    }
    found
}

/// The view that a side's expressions have of documents.
pub(super) const fn view(rules: &Rules) -> View {
    match rules {
        Rules::Definition(_) => View::Typed,
        Rules::Policy(_) => View::Plain,
    }
}
