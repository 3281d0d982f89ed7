//! Runs the cases of suites against a mutant: does one of them fail?

use std::sync::Arc;

use admit_policy::suite::crd::{self, CrdCase, Variant};
use admit_policy::suite::{self, Outcome, Reached};
use admit_policy::{Decision, ExpressionId, PolicySet};
use serde_json::Value;

use super::case::Seed;
use super::mutant::Mutant;
use super::world::{Entry, World};

/// A CustomResourceDefinition reduced to the version that a suite tests, and the suite's cases.
#[derive(Debug)]
pub struct Narrowed<'a> {
    /// The file that has the definition.
    pub file: &'a str,
    /// The version.
    pub version: &'a str,
    /// Its cases.
    pub cases: Vec<&'a CrdCase>,
}

/// The cases that test a document.
#[derive(Debug)]
pub enum Cases<'a> {
    /// From suites of policies.
    World(&'a World<'a>),
    /// From suites of a CustomResourceDefinition.
    Narrowed(&'a Narrowed<'a>),
}

/// The result of a mutant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fate {
    /// A case fails: the suites notice the change.
    Killed {
        /// The name of the case.
        by: String,
    },
    /// Every case still passes: the suites do not notice the change.
    Survived,
    /// The changed document is invalid: a server would not store it.
    Refused,
    /// Time ran out before the last case.
    Unfinished,
}

/// How many cases were run for a mutant. [`Trial`] has an example.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Cases that were run with the change.
    pub run: u64,
    /// Cases that never evaluate the changed part: they were not run, since they cannot notice the change.
    pub apart: u64,
}

/// A document with all cases that test it.
///
/// ```
/// use admit_analysis::mutate::{Cases, Fate, Seed, Trial, World, mutants};
/// use admit_policy::suite::Suite;
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
///   validations: [{expression: 'object.data.size() <= 1'}]
/// ---
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicyBinding
/// metadata: {name: few}
/// spec: {policyName: few, validationActions: [Deny]}
/// ";
/// let documents = manifest::read("few.yaml", text).unwrap();
/// let set = PolicySet::load_with(&documents, LoadOptions::default()).unwrap();
/// let object = |data| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
/// let suite = json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": [
///     {"name": "none", "object": object(json!({})), "expect": "allow"},
///     {"name": "many", "object": object(json!({"a": "", "b": "", "c": ""})), "expect": "deny"},
/// ]});
/// let read = Suite::decode(&suite).unwrap();
/// let cases = read.cases.iter().zip(suite["cases"].as_array().unwrap());
///
/// let world = World::new(&set, cases.map(|(case, own)| (case, Seed::new(case, own, &suite["defaults"]))));
/// let policy = &documents[0].value;
/// let trial = Trial::new(policy, vec![Cases::World(&world)]);
/// assert_eq!(trial.case_count(), 2);
/// let all = mutants(policy).unwrap();
/// let survive = all.iter().filter(|mutant| trial.judge(mutant, &|| false).0 == Fate::Survived);
/// let survive: Vec<&str> = survive.map(|mutant| mutant.becomes.as_str()).collect();
/// // Nobody tests a map with one entry, or two.
/// assert_eq!(survive, ["object.data.size() < 1", "2", "0"]);
/// let (_, tally) = trial.judge(&all[0], &|| false);
/// assert_eq!((tally.run, tally.apart), (1, 0), "what is denied comes first");
/// ```
#[derive(Debug)]
pub struct Trial<'a> {
    pub(super) document: &'a Value,
    pub(super) probes: Vec<Probe<'a>>,
}

#[derive(Debug)]
pub(super) enum Probe<'a> {
    /// Cases in which a validating policy runs, with its decision on each before the mutation.
    Policy {
        set: &'a PolicySet,
        policy: String,
        cases: Vec<Asked<'a>>,
    },
    /// Cases that a definition or a mutating policy takes part in, before validating policies run.
    Front {
        set: &'a PolicySet,
        cases: Vec<&'a Entry<'a>>,
    },
    Narrowed(&'a Narrowed<'a>),
}

/// A case in which a policy runs.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    reached: &'a Reached<'a>,
    /// The policy's decision before the mutation.
    before: Decision,
    seed: &'a Seed,
}

/// A policy set with the mutation applied.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) set: PolicySet,
    /// The mutated expression, if the same cases evaluate it as before.
    expression: Option<ExpressionId>,
}

impl Changed {
    /// Builds it; `None` if a server would reject the changed document. Only the expression is compiled, where that suffices.
    pub(super) fn of(set: &PolicySet, document: &Value, mutant: &Mutant) -> Option<Self> {
        let alone = mutant.text(document).and_then(|(id, text)| Some((set.with_expression(&id, text)?, id)));
        // A transition rule is not evaluated without an old object.
        let looks_back = |text: Option<&str>| text.is_some_and(|text| text.contains("oldSelf"));
        let is_everywhere = looks_back(mutant.expression(document))
            && !looks_back(mutant.value.as_ref().and_then(Value::as_str));
        match alone {
            Some((set, id)) => Some(Self { set, expression: (!is_everywhere).then_some(id) }),
            None => Some(Self { set: set.with(&mutant.of(document)).ok()?, expression: None }),
        }
    }
}

impl<'a> Asked<'a> {
    fn of(entry: &'a Entry<'_>, set: &PolicySet, policy: &str) -> Option<Self> {
        let reached = entry.reached.as_ref()?;
        Some(Self { reached, before: reached.decide(set, policy), seed: &entry.seed })
    }

    /// Reports whether the policy's rules were evaluated.
    fn comes_to_rules(&self) -> bool {
        self.before.outcomes.iter().any(|outcome| !outcome.rules.is_empty())
    }
}

impl<'a> Trial<'a> {
    /// Selects the cases in which `document` takes part.
    #[must_use]
    pub fn new(document: &'a Value, cases: Vec<Cases<'a>>) -> Self {
        let text = |pointer: &str| -> &'a str {
            document.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
        };
        let asked = |world: &'a World<'a>, policy: &'a str| {
            let cases =
                world.asking(policy).filter_map(|entry| Asked::of(entry, world.set, policy)).collect();
            let cases = alternating(cases, |asked: &Asked<'_>| asked.before.denial.is_some());
            Probe::Policy { set: world.set, policy: policy.to_owned(), cases }
        };
        let front = |world: &'a World<'a>, cases: Vec<&'a Entry<'a>>| {
            let cases = alternating(cases, |entry: &&Entry<'_>| entry.case.expect.outcome == Outcome::Deny);
            Probe::Front { set: world.set, cases }
        };
        let probe = |cases: Cases<'a>| {
            Some(match (cases, text("/kind")) {
                (Cases::World(world), "ValidatingAdmissionPolicy") => asked(world, text("/metadata/name")),
                (Cases::World(world), "ValidatingAdmissionPolicyBinding") => {
                    asked(world, text("/spec/policyName"))
                }
                (Cases::World(world), "MutatingAdmissionPolicy") => {
                    front(world, world.asking(text("/metadata/name")).collect())
                }
                (Cases::World(world), "MutatingAdmissionPolicyBinding") => {
                    front(world, world.asking(text("/spec/policyName")).collect())
                }
                (Cases::World(world), "CustomResourceDefinition") => {
                    front(world, world.about(document).collect())
                }
                (Cases::Narrowed(narrowed), "CustomResourceDefinition") => Probe::Narrowed(narrowed),
                _ => return None,
            })
        };
        let probes = cases.into_iter().filter_map(probe).filter(|probe| probe.len() > 0).collect();
        Self { document, probes }
    }

    /// Returns the number of cases. With none, nothing is tested.
    #[must_use]
    pub fn case_count(&self) -> usize {
        self.probes.iter().map(Probe::len).sum()
    }

    /// Runs the cases against the mutant until one fails or `over` returns true; returns the fate and the number of cases run.
    #[must_use]
    pub fn judge(&self, mutant: &Mutant, over: &dyn Fn() -> bool) -> (Fate, Tally) {
        let mut tally = Tally::default();
        for probe in &self.probes {
            match probe.judge(self.document, mutant, &mut tally, over) {
                Fate::Survived => {}
                other => return (other, tally),
            }
        }
        (Fate::Survived, tally)
    }
}

impl Probe<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Policy { cases, .. } => cases.len(),
            Self::Front { cases, .. } => cases.len(),
            Self::Narrowed(narrowed) => narrowed.cases.len(),
        }
    }

    /// Returns the policy set of the cases, and the mutated policy if it is a validating one; `None` if all cases are of a definition
    /// alone.
    pub(super) fn set(&self) -> Option<(&PolicySet, Option<&str>)> {
        match self {
            Self::Policy { set, policy, .. } => Some((set, Some(policy))),
            Self::Front { set, .. } => Some((set, None)),
            Self::Narrowed(_) => None,
        }
    }

    /// Returns the cases that can be written out.
    pub(super) fn seeds(&self) -> Box<dyn Iterator<Item = &Seed> + '_> {
        match self {
            Self::Policy { cases, .. } => Box::new(cases.iter().map(|asked| asked.seed)),
            Self::Front { cases, .. } => Box::new(cases.iter().map(|entry| &entry.seed)),
            Self::Narrowed(_) => Box::new(std::iter::empty()),
        }
    }

    fn judge(&self, document: &Value, mutant: &Mutant, tally: &mut Tally, over: &dyn Fn() -> bool) -> Fate {
        match self {
            Self::Policy { set, policy, cases } => {
                let Some(Changed { set: other, .. }) = Changed::of(set, document, mutant) else {
                    return Fate::Refused;
                };
                let comes_to_it = |asked: &&Asked<'_>| !mutant.is_within_policy() || asked.comes_to_rules();
                let kills = |Asked { reached, before, .. }: &Asked<'_>| {
                    // All policies run again only if this one's decision differs: the others decide as before.
                    reached.decide(&other, policy) != *before && !reached.run(&other).passed()
                };
                first(cases, tally, over, comes_to_it, kills, |asked| &asked.reached.case().name)
            }
            Self::Front { set, cases } => {
                let Some(Changed { set: other, expression }) = Changed::of(set, document, mutant) else {
                    return Fate::Refused;
                };
                let comes_to_it = |entry: &&&Entry<'_>| {
                    expression.as_ref().is_none_or(|expression| entry.evaluates(set, expression))
                };
                let kills = |entry: &&Entry<'_>| !suite::run(entry.case, &other).passed();
                first(cases, tally, over, comes_to_it, kills, |entry| &entry.case.name)
            }
            Self::Narrowed(narrowed) => {
                let changed = Arc::new(mutant.of(document));
                let Ok(variant) = Variant::compile(narrowed.file, changed, narrowed.version) else {
                    return Fate::Refused;
                };
                let kills = |case: &&CrdCase| !crd::run(case, &[&variant], None).passed();
                first(&narrowed.cases, tally, over, |_| true, kills, |case| &case.name)
            }
        }
    }
}

/// Returns the first of `cases` that kills, among those that evaluate the mutated part.
fn first<T>(
    cases: &[T],
    tally: &mut Tally,
    over: &dyn Fn() -> bool,
    comes_to_it: impl Fn(&&T) -> bool,
    kills: impl Fn(&T) -> bool,
    name: impl Fn(&T) -> &str,
) -> Fate {
    for case in cases {
        if over() {
            return Fate::Unfinished;
        }
        if !comes_to_it(&case) {
            tally.apart = tally.apart.saturating_add(1);
            continue;
        }
        tally.run = tally.run.saturating_add(1);
        if kills(case) {
            return Fate::Killed { by: name(case).to_owned() };
        }
    }
    Fate::Survived
}

/// Alternates between items of both kinds, each in order: denied cases detect weaker rules, admitted cases stricter ones.
fn alternating<T>(items: Vec<T>, kind: impl Fn(&T) -> bool) -> Vec<T> {
    let (some, others): (Vec<T>, Vec<T>) = items.into_iter().partition(kind);
    let (mut some, mut others) = (some.into_iter(), others.into_iter());
    let mut mixed = Vec::new();
    loop {
        let before = mixed.len();
        mixed.extend(some.next());
        mixed.extend(others.next());
        if mixed.len() == before {
            return mixed;
        }
    }
}
