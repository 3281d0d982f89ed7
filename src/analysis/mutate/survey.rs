//! Settles mutants that no case detects: searches a detecting case among variations of existing cases and with a solver, or lets the
//! solver prove that there is none.

use std::collections::VecDeque;

use admit_policy::PolicySet;
use serde_json::{Map, Value, json};

use admit_policy::Builtins;

use super::case::Seed;
use super::mutant::{Effect, Mutant};
use super::pair::{Errors, Killing, Pair};
use super::split;
use super::subject::{alone, subjects, text};
use super::trial::{Probe, Trial};
use super::vary::{Hints, variations};
use crate::prove::{Counterexample, Inquiry, Question, Side, Solver, Unconfirmed, Verdict};

/// The maximum number of cases that are varied.
const MOST_SEEDS: usize = 64;

/// Settles surviving mutants.
#[derive(Debug)]
pub struct Survey<'a> {
    /// The cases, none of which detects the mutant.
    pub trial: &'a Trial<'a>,
    /// The definitions of custom resources that policies apply to.
    pub definitions: &'a [&'a Value],
    /// The catalogue of built-in kinds.
    pub builtins: Option<&'static dyn Builtins>,
    /// The number of list items that the solver models, unless the schema declares fewer.
    pub items: usize,
    /// The number of variations to try per mutant before the solver is asked.
    pub tries: usize,
}

/// The result for a mutant that no case detects.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// It denies exactly the same requests: no case can detect it.
    Equivalent,
    /// This case detects it.
    Killable(Box<Killing>),
    /// Neither is known, for these reasons.
    Undecided(Vec<String>),
}

/// The result of a solver query.
enum Proved {
    Known(Settled),
    /// An object distinguishes the two, but it does not fit a request of the suites.
    Refuted(String),
}

impl Survey<'_> {
    /// Settles a mutant that no case detects.
    ///
    /// ```
    /// use admit_analysis::mutate::{Cases, Fate, Seed, Settled, Survey, Trial, World, mutants};
    /// use admit_policy::suite::{Outcome, Suite};
    /// use admit_policy::{LoadOptions, PolicySet, manifest};
    /// use serde_json::json;
    ///
    /// let text = "
    /// apiVersion: admissionregistration.k8s.io/v1
    /// kind: ValidatingAdmissionPolicy
    /// metadata: {name: few}
    /// spec:
    ///   matchConstraints:
    ///     resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
    ///   validations: [{expression: \"object.metadata.name != 'a'\", message: not a}]
    /// ---
    /// apiVersion: admissionregistration.k8s.io/v1
    /// kind: ValidatingAdmissionPolicyBinding
    /// metadata: {name: few}
    /// spec: {policyName: few, validationActions: [Deny]}
    /// ";
    /// let documents = manifest::read("few.yaml", text).unwrap();
    /// let set = PolicySet::load_with(&documents, LoadOptions::default()).unwrap();
    /// let suite = json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": [
    ///     {"name": "b", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}, "expect": "allow"},
    /// ]});
    /// let read = Suite::decode(&suite).unwrap();
    /// let seed = Seed::new(&read.cases[0], &suite["cases"][0], &suite["defaults"]);
    /// let world = World::new(&set, [(&read.cases[0], seed)]);
    /// let trial = Trial::new(&documents[0].value, vec![Cases::World(&world)]);
    ///
    /// // That nothing is denied: a ConfigMap that is called `a` would tell.
    /// let all = mutants(&documents[0].value).unwrap();
    /// assert_eq!(all[0].becomes, "true");
    /// assert_eq!(trial.judge(&all[0], &|| false).0, Fate::Survived);
    /// let survey = Survey { trial: &trial, definitions: &[], builtins: None, items: 3, tries: 100 };
    /// let Ok(Settled::Killable(killing)) = survey.settle(&all[0], None, &|| false) else { panic!() };
    /// assert_eq!(killing.case["object"]["metadata"]["name"], "a");
    /// assert_eq!(killing.case["expect"], json!({"outcome": "deny", "message": "not a", "field": "spec.validations[0]"}));
    /// assert_eq!((killing.outcome, killing.changed), (Outcome::Deny, Outcome::Allow));
    /// ```
    ///
    /// # Errors
    /// If the engine does not confirm the solver's counterexample.
    pub fn settle(
        &self,
        mutant: &Mutant,
        solver: Option<&mut dyn Solver>,
        over: &dyn Fn() -> bool,
    ) -> Result<Settled, Unconfirmed> {
        let (unproved, changed) = (self.unproved(mutant), mutant.of(self.trial.document));
        // A known equivalence saves running cases, which take most of the time.
        if unproved.is_none() && split::is_same(self.trial.document, &changed, mutant) {
            return Ok(Settled::Equivalent);
        }
        if let Some(found) = self.beside(mutant, over) {
            return Ok(Settled::Killable(Box::new(found)));
        }
        if let Some(why) = unproved {
            return Ok(Settled::Undecided(vec![format!(
                "no request beside those of the cases tells; {why}"
            )]));
        }
        let mut solver = solver;
        // Other rules deny the same with both, so the mutated rule is compared alone first, which is faster; what cannot be translated
        // in that rule cannot be translated in all of them.
        if let (Some(left), Some(right)) = (alone(self.trial.document, mutant), alone(&changed, mutant)) {
            let solver = solver.as_mut().map(|solver| &mut **solver as &mut dyn Solver);
            match self.proved((&left, &right), (mutant, &changed), solver, over)? {
                Proved::Refuted(_) => {}
                Proved::Known(settled) => return Ok(settled),
            }
        }
        Ok(match self.proved((self.trial.document, &changed), (mutant, &changed), solver, over)? {
            Proved::Known(settled) => settled,
            Proved::Refuted(why) => Settled::Undecided(vec![why]),
        })
    }

    /// Returns why the solver cannot prove equivalence; `None` if it can be asked.
    fn unproved(&self, mutant: &Mutant) -> Option<&'static str> {
        const SAID: &str = "what is said is not proved";
        match mutant.effect {
            Effect::Said => return Some(SAID),
            Effect::Object => return Some("what becomes of objects is not proved"),
            Effect::Verdict if !mutant.is_of_expression() => return Some("what is matched is not proved"),
            Effect::Verdict => {}
        }
        // The proof is about whether a request is denied, not about the reason.
        let document = self.trial.document;
        let says = |list: &str, key: &str| {
            let items = document.pointer(list).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(|item| item.get(key)?.as_str()).any(|text| text.contains("variables"))
        };
        let is_said = mutant.pointer.starts_with("/spec/variables/")
            && (says("/spec/validations", "messageExpression")
                || says("/spec/auditAnnotations", "valueExpression"));
        is_said.then_some(SAID)
    }

    /// Tries variations of existing cases, taking turns between the cases.
    fn beside(&self, mutant: &Mutant, over: &dyn Fn() -> bool) -> Option<Killing> {
        let pair = |probe| Some((Pair::of(probe, self.trial.document, mutant)?, probe));
        let pairs: Vec<(Pair<'_>, &Probe<'_>)> = self.trial.probes.iter().filter_map(pair).collect();
        let seeds = pairs.iter().flat_map(|(pair, probe)| probe.seeds().map(move |seed| (pair, seed)));
        let own = node(mutant);
        let beside = |(pair, seed): (_, &Seed)| {
            let mut hints = Hints::default();
            hints.of(&mutant.was, own.as_deref());
            if let Some(Value::String(whole)) = &mutant.value {
                hints.of(whole, own.as_deref());
            }
            hints.within(seed.written());
            (pair, variations(seed.written(), &hints))
        };
        let mut open: VecDeque<_> = seeds.take(MOST_SEEDS).map(beside).collect();
        let mut tried = 0_usize;
        while let Some((pair, mut variations)) = open.pop_front() {
            let Some(written) = variations.next() else { continue };
            tried = tried.saturating_add(1);
            if tried > self.tries || over() {
                return None;
            }
            if let Some(found) = pair.told(named(written, mutant), Errors::Passed) {
                return Some(found);
            }
            open.push_back((pair, variations));
        }
        None
    }

    fn proved(
        &self,
        (left, right): (&Value, &Value),
        (mutant, changed): (&Mutant, &Value),
        mut solver: Option<&mut dyn Solver>,
        over: &dyn Fn() -> bool,
    ) -> Result<Proved, Unconfirmed> {
        let subjects = match subjects(self.trial.document, mutant, self.definitions, self.builtins) {
            Ok(subjects) => subjects,
            Err(why) => return Ok(Proved::Known(Settled::Undecided(vec![why.to_string()]))),
        };
        let mut open = Vec::new();
        for subject in &subjects {
            let side = |document: &Value| match text(document, "/kind") {
                "CustomResourceDefinition" => Side::definition(document, subject),
                _ => Side::policy(document, subject),
            };
            let (left, right) = match (side(left), side(right)) {
                (Ok(left), Ok(right)) => (left, right),
                (Err(error), _) | (_, Err(error)) => {
                    open.push(error.to_string());
                    continue;
                }
            };
            let inquiry = Inquiry {
                question: Question::Equivalent,
                subject,
                left: &left,
                right: Some(&right),
                that: None,
                items: self.items,
            };
            let solver = solver.as_mut().map(|solver| &mut **solver as &mut dyn Solver);
            match inquiry.decide(solver, over)? {
                Verdict::Holds { up_to: None } => {}
                Verdict::Holds { up_to: Some(items) } => {
                    open.push(format!("the same up to {items} items of lists and maps, which may have more"));
                }
                Verdict::Undecided(undecided) => open.extend(undecided.into_iter().map(|one| one.what)),
                Verdict::Refuted(found) => match self.as_case(&found, mutant, changed) {
                    Some(killing) => return Ok(Proved::Known(Settled::Killable(Box::new(killing)))),
                    None => {
                        return Ok(Proved::Refuted(format!(
                            "{} tells, and not as a request of these suites: what is bound differs, or a server refuses it",
                            found.object
                        )));
                    }
                },
            }
        }
        let mut told: Vec<String> = Vec::new();
        for why in open {
            if !told.contains(&why) {
                told.push(why);
            }
        }
        let open = told;
        Ok(Proved::Known(if open.is_empty() { Settled::Equivalent } else { Settled::Undecided(open) }))
    }

    /// Puts the solver's request into an existing case.
    fn as_case(&self, found: &Counterexample, mutant: &Mutant, changed: &Value) -> Option<Killing> {
        let written = |seed: &Value| {
            let mut map: Map<String, Value> = seed.as_object().cloned().unwrap_or_default();
            for key in ["namespace", "resource", "subresource"] {
                map.shift_remove(key);
            }
            map.insert("object".to_owned(), found.object.clone());
            match &found.old_object {
                Some(old) => map.insert("oldObject".to_owned(), old.clone()),
                None => map.shift_remove("oldObject"),
            };
            let operation = if found.old_object.is_some() { "UPDATE" } else { "CREATE" };
            map.insert("operation".to_owned(), json!(operation));
            if !found.subresource.is_empty() {
                map.insert("subresource".to_owned(), json!(found.subresource));
            }
            named(Value::Object(map), mutant)
        };
        for probe in &self.trial.probes {
            if let Some(pair) = Pair::of(probe, self.trial.document, mutant) {
                let found = probe.seeds().find_map(|seed| pair.told(written(seed.written()), Errors::Told));
                if found.is_some() {
                    return found;
                }
            }
        }
        let alone = |document: &Value| {
            let mut builder = PolicySet::builder();
            builder.add(document).ok().map(|_| builder.finish())
        };
        let (set, other) = (alone(self.trial.document)?, alone(changed)?);
        Pair::new(&set, other).told(written(&json!({})), Errors::Told)
    }
}

/// Returns the field that the rule of a definition validates; `None` below lists and maps, which have many.
fn node(mutant: &Mutant) -> Option<Vec<String>> {
    let (_, below) = mutant.pointer.split_once("/openAPIV3Schema")?;
    let (nodes, _) = below.split_once("/x-kubernetes-validations/")?;
    let words: Vec<&str> = nodes.split('/').skip(1).collect();
    let names = words.chunks(2).map(|pair| match pair {
        ["properties", name] => Some(name.replace("~1", "/").replace("~0", "~")),
        _ => None,
    });
    names.collect()
}

/// Gives the case a name that states its purpose.
fn named(mut written: Value, mutant: &Mutant) -> Value {
    const MOST: usize = 60;
    let short = |text: &str| {
        let mut short: String = text.chars().take(MOST).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        short
    };
    let name = if mutant.becomes.is_empty() {
        format!("not without {}", short(&mutant.was))
    } else {
        format!("{}, and not {}", short(&mutant.was), short(&mutant.becomes))
    };
    if let Some(map) = written.as_object_mut() {
        map.shift_remove("name");
        map.shift_insert(0, "name".to_owned(), json!(name));
    }
    written
}
