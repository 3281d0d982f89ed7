//! What the cases of suites say of a change.

use std::sync::Arc;

use admit_policy::suite::crd::{self, CrdCase, Variant};
use admit_policy::suite::{self, Case, Reached};
use admit_policy::{Decision, GroupVersionKind, PolicySet};
use serde_json::Value;

use super::case::Seed;
use super::mutant::Mutant;

/// A set of policies and the cases that are judged by it, each as far as it comes before policies are asked.
///
/// [`Trial`] has an example.
#[derive(Debug)]
pub struct World<'a> {
    set: &'a PolicySet,
    cases: Vec<Entry<'a>>,
}

#[derive(Debug)]
pub(super) struct Entry<'a> {
    case: &'a Case,
    /// None where the case ends before policies are asked.
    reached: Option<Reached<'a>>,
    seed: Seed,
}

/// A definition narrowed to the version that a suite is about, and its cases.
#[derive(Debug)]
pub struct Narrowed<'a> {
    /// The file that has the definition.
    pub file: &'a str,
    /// The version.
    pub version: &'a str,
    /// What is tested.
    pub cases: Vec<&'a CrdCase>,
}

/// The cases that are about a document.
#[derive(Debug)]
pub enum Cases<'a> {
    /// Of suites of policies.
    World(&'a World<'a>),
    /// Of suites of a definition.
    Narrowed(&'a Narrowed<'a>),
}

/// What becomes of a change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fate {
    /// A case is judged otherwise than it expects.
    Killed {
        /// The name of the case.
        by: String,
    },
    /// Every case is judged as it expects.
    Survived,
    /// A server would not store it.
    Refused,
    /// The time was over before the last case.
    Unfinished,
}

/// A document, and all cases that are about it.
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
/// ```
#[derive(Debug)]
pub struct Trial<'a> {
    pub(super) document: &'a Value,
    pub(super) probes: Vec<Probe<'a>>,
}

#[derive(Debug)]
pub(super) enum Probe<'a> {
    /// Cases that ask a policy, and what it says of each as it is.
    Policy {
        set: &'a PolicySet,
        policy: String,
        cases: Vec<Asked<'a>>,
    },
    /// Cases that a definition has to do with, before policies are asked.
    Definition {
        set: &'a PolicySet,
        cases: Vec<&'a Entry<'a>>,
    },
    Narrowed(&'a Narrowed<'a>),
}

/// A case that asks a policy.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    reached: &'a Reached<'a>,
    /// What the policy says as it is.
    before: Decision,
    seed: &'a Seed,
}

impl<'a> World<'a> {
    /// The `cases` that are judged by `set`. Those that fail as it is say nothing of any change: leave them out.
    #[must_use]
    pub fn new(set: &'a PolicySet, cases: impl IntoIterator<Item = (&'a Case, Seed)>) -> Self {
        let entry = |(case, seed): (&'a Case, Seed)| Entry { case, reached: Reached::new(case, set), seed };
        Self { set, cases: cases.into_iter().map(entry).collect() }
    }

    fn of_policy(&'a self, policy: &str) -> Option<Probe<'a>> {
        let asks = |case: &Case| case.policies.is_empty() || case.policies.iter().any(|name| name == policy);
        let asked = self.cases.iter().filter(|entry| asks(entry.case)).filter_map(|entry| {
            let reached = entry.reached.as_ref()?;
            Some(Asked { reached, before: reached.decide(self.set, policy), seed: &entry.seed })
        });
        let cases: Vec<_> = asked.collect();
        (!cases.is_empty()).then(|| Probe::Policy { set: self.set, policy: policy.to_owned(), cases })
    }

    /// Where a case names policies, its definition is not what it is about.
    fn of_definition(&'a self, definition: &Value) -> Option<Probe<'a>> {
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
        let is_about = |case: &Case| {
            let objects = [case.object.as_deref(), case.old_object.as_deref()];
            objects.into_iter().flatten().any(|object| {
                let own = GroupVersionKind::of(object);
                own.group == group && own.kind == kind
            })
        };
        let is_asked = |entry: &&Entry<'_>| entry.case.policies.is_empty() && is_about(entry.case);
        let cases: Vec<&Entry<'_>> = self.cases.iter().filter(is_asked).collect();
        (!cases.is_empty()).then_some(Probe::Definition { set: self.set, cases })
    }
}

impl<'a> Trial<'a> {
    /// Takes of `cases` those that `document` has a say in.
    #[must_use]
    pub fn new(document: &'a Value, cases: Vec<Cases<'a>>) -> Self {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let probe = |cases: Cases<'a>| match (cases, text("/kind")) {
            (Cases::World(world), "ValidatingAdmissionPolicy") => world.of_policy(text("/metadata/name")),
            (Cases::World(world), "ValidatingAdmissionPolicyBinding") => {
                world.of_policy(text("/spec/policyName"))
            }
            (Cases::World(world), "CustomResourceDefinition") => world.of_definition(document),
            (Cases::Narrowed(narrowed), "CustomResourceDefinition") => Some(Probe::Narrowed(narrowed)),
            _ => None,
        };
        Self { document, probes: cases.into_iter().filter_map(probe).collect() }
    }

    /// How many cases there are. With none, nothing is tested.
    #[must_use]
    pub fn case_count(&self) -> usize {
        self.probes.iter().map(Probe::len).sum()
    }

    /// What the cases say of the change, and how many were run to know; until `over`.
    #[must_use]
    pub fn judge(&self, mutant: &Mutant, over: &dyn Fn() -> bool) -> (Fate, u64) {
        let changed = mutant.of(self.document);
        let mut runs = 0;
        for probe in &self.probes {
            match probe.judge(&changed, &mut runs, over) {
                Fate::Survived => {}
                other => return (other, runs),
            }
        }
        (Fate::Survived, runs)
    }
}

impl Probe<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Policy { cases, .. } => cases.len(),
            Self::Definition { cases, .. } => cases.len(),
            Self::Narrowed(narrowed) => narrowed.cases.len(),
        }
    }

    /// The set that judges the cases; none for those of a definition alone.
    pub(super) fn set(&self) -> Option<&PolicySet> {
        match self {
            Self::Policy { set, .. } | Self::Definition { set, .. } => Some(set),
            Self::Narrowed(_) => None,
        }
    }

    /// The cases as they are written, where they can be.
    pub(super) fn seeds(&self) -> Box<dyn Iterator<Item = &Seed> + '_> {
        match self {
            Self::Policy { cases, .. } => Box::new(cases.iter().map(|asked| asked.seed)),
            Self::Definition { cases, .. } => Box::new(cases.iter().map(|entry| &entry.seed)),
            Self::Narrowed(_) => Box::new(std::iter::empty()),
        }
    }

    fn judge(&self, changed: &Value, runs: &mut u64, over: &dyn Fn() -> bool) -> Fate {
        match self {
            Self::Policy { set, policy, cases } => {
                let Ok(other) = set.with(changed) else { return Fate::Refused };
                let kills = |Asked { reached, before, .. }: &Asked<'_>| {
                    // The others say what they said: only where this one differs all are asked again.
                    reached.decide(&other, policy) != *before && !reached.run(&other).passed()
                };
                first(cases, runs, over, kills, |asked| &asked.reached.case().name)
            }
            Self::Definition { set, cases } => {
                let Ok(other) = set.with(changed) else { return Fate::Refused };
                let kills = |entry: &&Entry<'_>| !suite::run(entry.case, &other).passed();
                first(cases, runs, over, kills, |entry| &entry.case.name)
            }
            Self::Narrowed(narrowed) => {
                let variant = Variant::compile(narrowed.file, Arc::new(changed.clone()), narrowed.version);
                let Ok(variant) = variant else { return Fate::Refused };
                let kills = |case: &&CrdCase| !crd::run(case, &[&variant], None).passed();
                first(&narrowed.cases, runs, over, kills, |case| &case.name)
            }
        }
    }
}

/// The first of `cases` that kills.
fn first<T>(
    cases: &[T],
    runs: &mut u64,
    over: &dyn Fn() -> bool,
    kills: impl Fn(&T) -> bool,
    name: impl Fn(&T) -> &str,
) -> Fate {
    for case in cases {
        if over() {
            return Fate::Unfinished;
        }
        *runs = runs.saturating_add(1);
        if kills(case) {
            return Fate::Killed { by: name(case).to_owned() };
        }
    }
    Fate::Survived
}
