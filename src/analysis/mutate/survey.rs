//! What becomes of changes that no case saw: a case that would have seen it is looked for, beside the cases that there are and
//! by a solver; or the solver proves that there is none.

use admit_policy::PolicySet;
use admit_policy::suite::{self, CaseResult, Outcome};
use serde_json::{Map, Value, json};

use super::case;
use super::mutant::Mutant;
use super::trial::{Probe, Trial};
use super::vary::{Hints, variations};
use crate::prove::{Counterexample, Inquiry, Question, Side, Solver, Subject, Unconfirmed, Verdict};

/// Cases beside those that there are that are tried for one change.
const MOST_TRIED: usize = 1_500;

/// Who looks at survivors.
#[derive(Debug)]
pub struct Survey<'a> {
    /// The cases that did not see the change.
    pub trial: &'a Trial<'a>,
    /// The definitions of the kinds that policies are about.
    pub definitions: &'a [&'a Value],
    /// Items of lists that are thought of, where no fewer are declared.
    pub items: usize,
}

/// What is known of a change that no case saw.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// It denies what was denied, and nothing else: there is no case that could tell.
    Equivalent,
    /// A case would tell.
    Killable(Box<Killing>),
    /// Neither is known, for these reasons.
    Undecided(Vec<String>),
}

/// A case that passes as the rules are, and fails with the change.
#[derive(Clone, Debug, PartialEq)]
pub struct Killing {
    /// As it is written in a suite.
    pub case: Value,
    /// What comes of it as the rules are.
    pub outcome: Outcome,
    /// What comes of it with the change.
    pub changed: Outcome,
    /// What is said with the change, if anything.
    pub message: String,
}

/// What both sets say of requests.
struct Pair<'s> {
    set: &'s PolicySet,
    other: PolicySet,
}

/// Whether a rule that fails is a verdict to expect: where nothing else tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Errors {
    Told,
    Passed,
}

impl Survey<'_> {
    /// Settles what is known of a change that no case saw.
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
    /// let survey = Survey { trial: &trial, definitions: &[], items: 3 };
    /// let Ok(Settled::Killable(killing)) = survey.settle(&all[0], None, &|| false) else { panic!() };
    /// assert_eq!(killing.case["object"]["metadata"]["name"], "a");
    /// assert_eq!(killing.case["expect"], json!({"outcome": "deny", "message": "not a", "field": "spec.validations[0]"}));
    /// assert_eq!((killing.outcome, killing.changed), (Outcome::Deny, Outcome::Allow));
    /// ```
    ///
    /// # Errors
    /// When the engine does not confirm what the solver found.
    pub fn settle(
        &self,
        mutant: &Mutant,
        solver: Option<&mut dyn Solver>,
        over: &dyn Fn() -> bool,
    ) -> Result<Settled, Unconfirmed> {
        let changed = mutant.of(self.trial.document);
        if let Some(found) = self.beside(mutant, &changed, over) {
            return Ok(Settled::Killable(Box::new(found)));
        }
        if !mutant.is_of_expression() {
            let why = "no request beside those of the cases tells; what is matched is not proved";
            return Ok(Settled::Undecided(vec![why.to_owned()]));
        }
        let (mut solver, mut own) = (solver, None);
        // Other rules deny what they deny beside either: what is the same without them is the same, and sooner known.
        if let (Some(left), Some(right)) = (alone(self.trial.document, mutant), alone(&changed, mutant)) {
            let solver = solver.as_mut().map(|solver| &mut **solver as &mut dyn Solver);
            match self.proved((&left, &right), (mutant, &changed), solver, over)? {
                // What is not followed of the rule itself is what its author wants to know.
                Settled::Undecided(why) => own = Some(Settled::Undecided(why)),
                known => return Ok(known),
            }
        }
        match self.proved((self.trial.document, &changed), (mutant, &changed), solver, over)? {
            Settled::Undecided(why) => Ok(own.unwrap_or(Settled::Undecided(why))),
            known => Ok(known),
        }
    }

    /// A case beside those that there are.
    fn beside(&self, mutant: &Mutant, changed: &Value, over: &dyn Fn() -> bool) -> Option<Killing> {
        let mut tried = 0_usize;
        for probe in &self.trial.probes {
            let Some(pair) = Pair::of(probe, changed) else { continue };
            for seed in probe.seeds() {
                let mut hints = Hints::default();
                let own = node(mutant);
                hints.of(&mutant.was, own.as_deref());
                if let Some(Value::String(whole)) = &mutant.value {
                    hints.of(whole, own.as_deref());
                }
                hints.within(seed.written());
                for written in variations(seed.written(), &hints) {
                    tried = tried.saturating_add(1);
                    if tried > MOST_TRIED || over() {
                        return None;
                    }
                    if let Some(found) = pair.told(named(written, mutant), Errors::Passed) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    fn proved(
        &self,
        (left, right): (&Value, &Value),
        (mutant, changed): (&Mutant, &Value),
        mut solver: Option<&mut dyn Solver>,
        over: &dyn Fn() -> bool,
    ) -> Result<Settled, Unconfirmed> {
        let subjects = match subjects(self.trial.document, mutant, self.definitions) {
            Ok(subjects) => subjects,
            Err(why) => return Ok(Settled::Undecided(vec![why])),
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
                    Some(killing) => return Ok(Settled::Killable(Box::new(killing))),
                    None => open.push(format!(
                        "{} tells, and not as a request of these suites: what is bound differs, or a server refuses it",
                        found.object
                    )),
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
        Ok(if open.is_empty() { Settled::Equivalent } else { Settled::Undecided(open) })
    }

    /// The request that a solver found, in the surroundings of a case that there is.
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
            named(Value::Object(map), mutant)
        };
        for probe in &self.trial.probes {
            if let Some(pair) = Pair::of(probe, changed) {
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
        Pair { set: &set, other }.told(written(&json!({})), Errors::Told)
    }
}

impl<'s> Pair<'s> {
    fn of(probe: &'s Probe<'_>, changed: &Value) -> Option<Self> {
        let set = probe.set()?;
        Some(Self { set, other: set.with(changed).ok()? })
    }

    /// The case with what is expected of it, if it passes as the rules are and fails with the change.
    fn told(&self, mut written: Value, errors: Errors) -> Option<Killing> {
        let builtins = case::builtins(self.set);
        let asked = case::read(&written, &json!("allow"), builtins)?;
        let (before, after) = (suite::run(&asked, self.set), suite::run(&asked, &self.other));
        let is_verdict = |result: &CaseResult| {
            !result.refused && (errors == Errors::Told || result.outcome != Outcome::Error)
        };
        if !is_verdict(&before) || same(&before, &after) {
            return None;
        }
        let mut expect = Map::from_iter([("outcome".to_owned(), json!(before.outcome.as_str()))]);
        for (key, value) in [("message", &before.message), ("field", &before.field)] {
            if !value.is_empty() {
                expect.insert(key.to_owned(), json!(value));
            }
        }
        let expect = Value::Object(expect);
        let expecting = case::read(&written, &expect, builtins)?;
        let holds =
            suite::run(&expecting, self.set).passed() && !suite::run(&expecting, &self.other).passed();
        if !holds {
            return None;
        }
        written.as_object_mut()?.insert("expect".to_owned(), expect);
        Some(Killing {
            case: written,
            outcome: before.outcome,
            changed: after.outcome,
            message: after.message,
        })
    }
}

/// The document with the rule that is changed and no other; none where it is no rule of its own.
fn alone(document: &Value, mutant: &Mutant) -> Option<Value> {
    const OF_SCHEMAS: &str = "/x-kubernetes-validations";
    const OF_POLICIES: &str = "/spec/validations";
    let (list, number) = match mutant.pointer.split_once(OF_POLICIES) {
        Some(("", below)) => (OF_POLICIES.to_owned(), below),
        _ => {
            let (above, below) = mutant.pointer.rsplit_once(OF_SCHEMAS)?;
            (format!("{above}{OF_SCHEMAS}"), below)
        }
    };
    let at: usize = number.split('/').nth(1)?.parse().ok()?;
    let rule = document.pointer(&list)?.get(at)?.clone();
    let mut document = document.clone();
    strip(&mut document);
    // The list may be gone with all others: it is put where it was.
    let (parent, name) = list.rsplit_once('/')?;
    document.pointer_mut(parent)?.as_object_mut()?.insert(name.to_owned(), Value::Array(vec![rule]));
    Some(document)
}

/// Takes the rules out of all schemas.
fn strip(document: &mut Value) {
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                if map.get("x-kubernetes-validations").is_some_and(Value::is_array) {
                    map.shift_remove("x-kubernetes-validations");
                }
                open.extend(map.values_mut());
            }
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Where in an object the rule of a definition is; none below lists and maps, which have many such places.
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

fn same(a: &CaseResult, b: &CaseResult) -> bool {
    let told = |result: &CaseResult| {
        (result.outcome, result.message.clone(), result.field.clone(), result.policy.clone())
    };
    told(a) == told(b)
}

/// The case under a name that says what it is there for.
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

fn text<'d>(document: &'d Value, pointer: &str) -> &'d str {
    document.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The kinds that the rule is about: that of its definition, or all that the constraints of a policy name.
fn subjects(document: &Value, mutant: &Mutant, definitions: &[&Value]) -> Result<Vec<Subject>, String> {
    let told = |error: crate::prove::SideError| error.to_string();
    if text(document, "/kind") == "CustomResourceDefinition" {
        let version = mutant.pointer.split('/').nth(3).unwrap_or_default();
        let name = text(document, &format!("/spec/versions/{version}/name"));
        return Ok(vec![Subject::new(document, Some(name)).map_err(told)?]);
    }
    let rules = document.pointer("/spec/matchConstraints/resourceRules").and_then(Value::as_array);
    let mut found = Vec::new();
    for rule in rules.into_iter().flatten() {
        for (group, resource) in pairs(rule) {
            let plural = resource.split('/').next().unwrap_or_default();
            let is_it = |definition: &&&Value| {
                text(definition, "/spec/group") == group && text(definition, "/spec/names/plural") == plural
            };
            let Some(definition) = definitions.iter().find(is_it) else {
                let group = if group.is_empty() { String::new() } else { format!(".{group}") };
                return Err(format!(
                    "no definition of {plural}{group}: --definitions names files that have it"
                ));
            };
            let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
            let served =
                versions.into_iter().flatten().filter(|version| version.get("served") == Some(&json!(true)));
            for version in served.filter_map(|version| version.get("name").and_then(Value::as_str)) {
                found.push(Subject::new(definition, Some(version)).map_err(told)?);
            }
        }
    }
    if found.is_empty() { Err("the policy matches no kind".to_owned()) } else { Ok(found) }
}

/// Group and resource of everything that a rule names, each once.
fn pairs(rule: &Value) -> Vec<(&str, &str)> {
    let list = |name: &str| {
        let items = rule.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str)
    };
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for group in list("apiGroups") {
        for resource in list("resources") {
            let plural = resource.split('/').next().unwrap_or_default();
            if !pairs.iter().any(|(known, other)| *known == group && other.split('/').next() == Some(plural))
            {
                pairs.push((group, resource));
            }
        }
    }
    pairs
}
