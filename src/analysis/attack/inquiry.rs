//! Searches for requests that evade one policy of a set.
//!
//! ```text
//! given requests, or found ones ──denied──► shrunk ──offences──► Scene ──families──► neighbours ──confirmed──► findings
//! ```

use std::collections::BTreeMap;

use admit_policy::manifest::Document;
use admit_policy::suite::Outcome;
use admit_policy::{Enforcement, Operation, Policy, PolicySet};
use serde_json::Value;

use super::ask::Ask;
use super::denied::Finder;
use super::families;
use super::finding::{Attacked, Family, Finding, Unconfirmed, Undecided};
use super::judge::{Judge, Judged};
use super::offence::{Offence, Search};
use super::rules::Rules;
use super::scene::{Neighbour, Scene};
use super::selectors::{self, Selector};
use super::types::Types;
use super::values::Values;

/// The maximum number of denied requests to start from, and of offences per request.
const MOST_BASES: usize = 24;
const MOST_OFFENCES: usize = 4;
/// The maximum number of denied requests kept per set of violated rules.
const MOST_ALIKE: usize = 3;

/// A search for admitted requests with the same effect as one that a policy denies.
///
/// ```
/// use admit_analysis::attack::{Ask, Inquiry};
/// use admit_policy::{GroupVersionResource, PolicySet, manifest};
/// use serde_json::json;
///
/// let text = "
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicy
/// metadata: {name: few}
/// spec:
///   matchConstraints:
///     resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
///   validations: [{expression: 'object.data.size != \"9\"', message: too many}]
/// ---
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicyBinding
/// metadata: {name: few}
/// spec: {policyName: few, validationActions: [Deny]}
/// ";
/// let documents = manifest::read("few.yaml", text).unwrap();
/// let set = PolicySet::load(&documents).unwrap();
/// let map = json!({
///     "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}, "data": {"size": "9"},
/// });
/// let given = [Ask::creation(map, GroupVersionResource::new("", "v1", "configmaps"))];
/// let inquiry = Inquiry { set: &set, documents: &documents, policy: "few", given: &given, over: &|| false };
/// let attacked = inquiry.attack()?;
/// assert_eq!((attacked.denied, attacked.undecided), (1, None));
/// // What is denied when it is created can be made of another one.
/// let found = &attacked.findings[0];
/// assert_eq!((found.family.as_str(), found.admitted.title().as_str()), ("operations", "UPDATE configmaps"));
/// assert_eq!(found.admitted.case("past", &[], found.outcome)["expect"], "unmatched");
/// # Ok::<(), admit_analysis::attack::Unconfirmed>(())
/// ```
#[derive(Clone, Copy)]
pub struct Inquiry<'a> {
    /// Policies, definitions and params, compiled.
    pub set: &'a PolicySet,
    /// The documents that the set was made of; the texts of rules are read from them.
    pub documents: &'a [Document],
    /// The name of the policy.
    pub policy: &'a str,
    /// Requests to start from if the policy denies them; the others supply field values.
    pub given: &'a [Ask],
    /// Reports whether time is up.
    pub over: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Inquiry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inquiry")
            .field("policy", &self.policy)
            .field("given", &self.given.len())
            .finish_non_exhaustive()
    }
}

/// The facts about the policy.
struct Known<'a> {
    judge: Judge<'a>,
    rules: Rules,
    selectors: Vec<Selector>,
    objects: Vec<Value>,
}

impl<'a> Inquiry<'a> {
    /// Runs the search.
    ///
    /// # Errors
    /// If a pair gets other verdicts when it is evaluated again.
    pub fn attack(&self) -> Result<Attacked, Unconfirmed> {
        let nothing = |why| Attacked { findings: Vec::new(), denied: 0, tried: 0, undecided: Some(why) };
        let Some(known) = self.known() else { return Ok(nothing(Undecided::NotEnforced)) };
        let types = Types::new(self.set, known.judge.catalogue());
        let values = Values { types: &types, rules: &known.rules, given: &known.objects };
        let search = Search { judge: &known.judge, rules: &known.rules, values: &values };
        let bases = self.bases(&known, &types, &values);
        if bases.is_empty() {
            let why = if (self.over)() { Undecided::Interrupted } else { Undecided::NothingDenied };
            return Ok(Attacked { tried: known.judge.tried(), ..nothing(why) });
        }
        let mut found: BTreeMap<(Family, String), Finding> = BTreeMap::new();
        let mut seen: Vec<(Vec<String>, Option<Value>, String)> = Vec::new();
        let mut has_reason = false;
        for (given, judged) in &bases {
            for base in search.shrunk(given, judged, self.over) {
                let offences = search.reasons(&base, &known.judge.ask(&base), self.over);
                let says_why =
                    |found: &Offence| !found.is_of_request() || base.operation == Operation::Connect;
                has_reason |= offences.iter().any(says_why);
                for offence in offences.into_iter().take(MOST_OFFENCES) {
                    let key = (offence.path.pattern(), offence.value.clone(), base.title());
                    if seen.contains(&key) || (self.over)() {
                        continue;
                    }
                    seen.push(key);
                    self.neighbours(&known, &types, (&base, &offence), &mut found)?;
                }
            }
        }
        let mut findings: Vec<Finding> = found.into_values().collect();
        findings.sort_by(|a, b| (a.differences, a.family, &a.path).cmp(&(b.differences, b.family, &b.path)));
        let undecided = if (self.over)() {
            Some(Undecided::Interrupted)
        } else if !has_reason && findings.is_empty() {
            Some(Undecided::NoReason)
        } else {
            None
        };
        Ok(Attacked { findings, denied: bases.len(), tried: known.judge.tried(), undecided })
    }

    fn known(&self) -> Option<Known<'a>> {
        let (policy, bindings) = self.set.policies().find(|(policy, _)| *policy.name == *self.policy)?;
        let denies = |binding: &admit_policy::Binding| binding.actions.contains(&Enforcement::Deny);
        if !bindings.iter().any(denies) {
            return None;
        }
        let document = |kind: &str, name: &str| {
            let is_it = |document: &&Document| {
                let text = |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str);
                text("/kind") == Some(kind) && text("/metadata/name") == Some(name)
            };
            self.documents.iter().find(is_it).map(|document| &document.value)
        };
        let own = document("ValidatingAdmissionPolicy", self.policy)?;
        let bound: Vec<&Value> = bindings
            .iter()
            .filter(|binding| denies(binding))
            .filter_map(|binding| document("ValidatingAdmissionPolicyBinding", &binding.name))
            .collect();
        let objects =
            self.given.iter().flat_map(|ask| ask.object.iter().chain(&ask.old_object)).cloned().collect();
        let policy: &'a Policy = policy;
        Some(Known {
            judge: Judge::new(self.set, policy),
            rules: Rules::of(own),
            selectors: selectors::of(own, &bound),
            objects,
        })
    }

    /// Returns requests that the policy denies: given ones, else generated ones.
    fn bases(&self, known: &Known<'_>, types: &Types<'_>, values: &Values<'_>) -> Vec<(Ask, Judged)> {
        let denied = |ask: &Ask| {
            let judged = known.judge.ask(ask);
            (judged.denies && judged.refused.is_none()).then(|| (ask.clone(), judged))
        };
        let mut bases: Vec<(Ask, Judged)> = Vec::new();
        for ask in self.given {
            if bases.len() >= MOST_BASES || (self.over)() {
                break;
            }
            let Some((ask, judged)) = denied(ask) else { continue };
            let is_alike = |(other, of_other): &&(Ask, Judged)| {
                of_other.validations == judged.validations && other.title() == ask.title()
            };
            if bases.iter().filter(is_alike).count() < MOST_ALIKE {
                bases.push((ask, judged));
            }
        }
        if bases.is_empty() {
            let finder = Finder { judge: &known.judge, types, rules: &known.rules, values };
            bases.extend(finder.find(self.over).iter().filter_map(denied));
        }
        bases
    }

    fn neighbours(
        &self,
        known: &Known<'_>,
        types: &Types<'_>,
        (base, offence): (&Ask, &Offence),
        found: &mut BTreeMap<(Family, String), Finding>,
    ) -> Result<(), Unconfirmed> {
        let Some(object) = &base.object else { return Ok(()) };
        let scene = Scene {
            judge: &known.judge,
            types,
            rules: &known.rules,
            selectors: &known.selectors,
            base,
            object,
            offence,
            over: self.over,
        };
        for find in families::of(&scene) {
            let mut neighbours = Vec::new();
            find(&scene, &mut neighbours);
            for neighbour in neighbours {
                let key = (neighbour.family, neighbour.path.clone());
                let finding = self.confirmed(known, (base, offence), neighbour)?;
                let is_nearer = found.get(&key).is_none_or(|other| finding.differences < other.differences);
                if is_nearer {
                    found.insert(key, finding);
                }
            }
        }
        Ok(())
    }

    /// Evaluates both requests again, as test cases of a suite.
    fn confirmed(
        &self,
        known: &Known<'_>,
        (base, offence): (&Ask, &Offence),
        neighbour: Neighbour,
    ) -> Result<Finding, Unconfirmed> {
        let Neighbour { family, path, what, ask, first } = neighbour;
        let unconfirmed =
            |path: &str| Unconfirmed { policy: self.policy.to_owned(), family, path: path.to_owned() };
        let denied = known.judge.confirmed(base, true);
        let denied = denied.filter(|outcome| matches!(outcome, Outcome::Deny | Outcome::Error));
        let admitted = |ask: &Ask| match known.judge.confirmed(ask, false)? {
            Outcome::Error if known.judge.ask(ask).admitted => Some(Outcome::Error),
            Outcome::Deny | Outcome::Error => None,
            outcome @ (Outcome::Allow | Outcome::Unmatched | Outcome::Warn | Outcome::Audit) => Some(outcome),
        };
        let first = match first {
            Some(first) => {
                let outcome = admitted(&first).ok_or_else(|| unconfirmed(&path))?;
                Some((first, outcome.as_str()))
            }
            None => None,
        };
        let Some(outcome) = admitted(&ask) else { return Err(unconfirmed(&path)) };
        let Some(denied) = denied.filter(|_| known.judge.ask(base).denies) else {
            return Err(unconfirmed(&path));
        };
        Ok(Finding {
            family,
            path,
            what,
            differences: base.differences(&ask).saturating_add(usize::from(first.is_some())),
            offence: offence.place(),
            value: offence.value.clone(),
            denied: base.clone(),
            first,
            admitted: ask,
            outcome: outcome.as_str(),
            denied_outcome: denied.as_str(),
        })
    }
}
