//! Translates the verdict of a side's rules on an arbitrary object into terms.

use admit_policy::schema::Schema;

use super::document::World;
use super::eval::{Evaluator, OPERATION, Scope};
use super::placed::{Asked, Objects};
use super::side::{Clause, DefinitionRules, PolicyRules, Rules};
use super::term::Term;
use super::value::Value;
use super::view::View;
use super::{Undecided, undecided};

/// The verdict of a side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ruling {
    pub(super) denied: Term,
    pub(super) failed: Term,
}

/// Translates the rules of a side; the error lists everything that cannot be translated.
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

/// Reports whether an expression reads the old object.
pub(super) fn looks_back(rules: &Rules) -> bool {
    match rules {
        Rules::Definition(rules) => any_rule(&rules.schema, &|rule| rule.contains("oldSelf")),
        Rules::Policy(rules) => !rules.matched.updates.is_empty(),
    }
}

fn any_rule(schema: &Schema, is_it: &dyn Fn(&str) -> bool) -> bool {
    let below = schema.properties.values().chain(schema.items.as_deref()).chain(schema.additional_schema());
    schema.rules.iter().any(|rule| is_it(&rule.rule)) || below.into_iter().any(|child| any_rule(child, is_it))
}

fn of_definition(
    world: &mut World<'_>,
    rules: &DefinitionRules,
    objects: Objects,
    side: usize,
) -> Result<Ruling, Vec<Undecided>> {
    let asked = Asked { schema: &rules.schema, place: &rules.place, objects, side, before: None };
    let (verdicts, undecided) = asked.verdicts(world);
    if !undecided.is_empty() {
        let mut told: Vec<Undecided> = Vec::new();
        for (one, _) in undecided {
            if !told.contains(&one) {
                told.push(one);
            }
        }
        return Err(told);
    }
    let (mut denied, mut failed) = (Vec::new(), Vec::new());
    for verdict in verdicts {
        denied.push(verdict.denied(world));
        failed.push(world.terms.and(&[verdict.asked, verdict.error]));
    }
    Ok(Ruling { denied: world.terms.or(&denied), failed: world.terms.or(&failed) })
}

fn of_policy(
    world: &mut World<'_>,
    rules: &PolicyRules,
    objects: Objects,
    side: usize,
) -> Result<Ruling, Vec<Undecided>> {
    let mut scope = Scope::default();
    let mut given = |world: &mut World<'_>, name: &'static str, node: Option<super::document::NodeId>| {
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
    if rules.annotates {
        found.push(undecided("audit annotations that may fail").of(side, "spec.auditAnnotations"));
    }
    let conditions = evaluated(world, &scope, &rules.conditions, side, &mut found);
    let validations = evaluated(world, &scope, &rules.validations, side, &mut found);
    if !found.is_empty() {
        return Err(found);
    }
    let terms = &mut world.terms;
    // A false match condition takes precedence over failed ones.
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
        world.evaluate_at(side, &clause.field);
        match Evaluator::new(world, scope, clause.ast()).run() {
            Ok(truth) => found.push(truth),
            Err(error) => undecided.push(error.of(side, &clause.field)),
        }
    }
    found
}

/// Returns how a side's expressions see objects.
pub(super) const fn view(rules: &Rules) -> View {
    match rules {
        Rules::Definition(_) => View::Typed,
        Rules::Policy(_) => View::Plain,
    }
}
