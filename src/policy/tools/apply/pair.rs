//! Pairs new objects with the old ones that they replace, by kind, namespace and name.

use std::collections::HashMap;
use std::sync::Arc;

use admit_apimachinery::pointer;
use serde_json::Value;
use thiserror::Error;

use crate::request::GroupVersionKind;
use crate::request::host::{Host as _, Scope};
use crate::set::documents::Documents;

/// The identity of an object.
///
/// ```
/// use admit_policy::Documents;
/// use admit_policy::apply::Identity;
/// use serde_json::json;
///
/// let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-"}});
/// let identity = Identity::of(&pod, &Documents::default(), "shop")?;
/// assert_eq!((identity.namespace.as_str(), identity.name.as_str()), ("shop", "web-XXXXX"));
/// # Ok::<(), admit_policy::apply::PairError>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Identity {
    pub kind: GroupVersionKind,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name, with `XXXXX` in place of what a server would generate.
    pub name: String,
}

/// An object to apply, and the one that is there.
///
/// [`Pairing`] has an example.
#[derive(Clone, Debug)]
pub struct Pair {
    pub identity: Identity,
    /// The index of the new object in the input.
    pub position: usize,
    /// The new object, with its namespace filled in.
    pub new: Arc<Value>,
    /// The old object, in the version of the new one.
    pub old: Option<Arc<Value>>,
}

/// New objects beside old ones.
#[derive(Clone, Debug, Default)]
pub struct Paired {
    /// The pairs, in the order of the new objects.
    pub pairs: Vec<Pair>,
    /// Positions of the old objects that have no new one.
    pub left: Vec<usize>,
}

/// A list of objects that cannot be applied together.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PairError {
    #[error("must have `apiVersion` and `kind`")]
    NoKind,
    #[error("metadata.name: must be specified")]
    NoName,
    #[error("{identity}: there is already one of this kind, namespace and name")]
    Duplicate {
        identity: String,
        /// The position in the list of the first one.
        first: usize,
    },
}

/// Pairs each object of `new` with its predecessor in `old`. A namespaced object without a namespace is placed in `namespace`; `known`
/// tells which kinds are namespaced.
///
/// Versions do not distinguish objects: an object is served in all of them.
///
/// # Errors
/// The objects that cannot be applied, by position in `new`.
///
/// ```
/// use std::sync::Arc;
///
/// use admit_policy::apply::{Change, Options, Rehearsal, pair};
/// use admit_policy::{LoadOptions, PolicySet};
/// use serde_json::json;
///
/// let policies = "
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicy
/// metadata: {name: named}
/// spec:
///   matchConstraints:
///     resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
///   validations: [{expression: object.metadata.name != 'x', message: not x}]
/// ---
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicyBinding
/// metadata: {name: named}
/// spec: {policyName: named, validationActions: [Deny]}
/// ";
/// let set = PolicySet::load_files([("policies.yaml", policies)], LoadOptions::default()).unwrap();
/// let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
/// let paired = pair(&[Arc::new(new)], &[], set.documents(), "shop").unwrap();
/// let applied = Rehearsal::new(&set, [], Options::default()).apply(&paired.pairs[0]);
/// assert_eq!(applied.change, Change::Create);
/// assert!(applied.refusal.is_some_and(|status| status.message.ends_with("denied request: not x")));
/// ```
pub fn pair(
    new: &[Arc<Value>],
    old: &[Arc<Value>],
    known: &Documents,
    namespace: &str,
) -> Result<Paired, Vec<(usize, PairError)>> {
    let mut pairing = Pairing::new(known, namespace);
    old.iter().enumerate().for_each(|(position, object)| pairing.add_old(position, object));
    let (mut pairs, mut errors) = (Vec::with_capacity(new.len()), Vec::new());
    for (position, object) in new.iter().enumerate() {
        match pairing.add_new(position, object) {
            Ok((identity, before)) => {
                let old = before.and_then(|position| old.get(position));
                pairs.push(Pair::new(identity, position, object, old, known));
            }
            Err(error) => errors.push((position, error)),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(Paired { pairs, left: pairing.left() })
}

/// Pairs objects as [`pair`] does without holding all of them: they are added one by one, the old ones first.
///
/// ```
/// use std::sync::Arc;
///
/// use admit_policy::Documents;
/// use admit_policy::apply::{Pair, Pairing};
/// use serde_json::json;
///
/// let named = |name: &str| Arc::new(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}));
/// let (known, old, new) = (Documents::default(), [named("a"), named("b")], named("a"));
/// let mut pairing = Pairing::new(&known, "shop");
/// for (position, object) in old.iter().enumerate() {
///     pairing.add_old(position, object);
/// }
/// let (identity, before) = pairing.add_new(0, &new)?;
/// let pair = Pair::new(identity, 0, &new, before.and_then(|at| old.get(at)), &known);
/// assert_eq!(pair.new["metadata"]["namespace"], "shop");
/// assert!(pair.old.is_some());
/// assert_eq!(pairing.left(), [1]);
/// # Ok::<(), admit_policy::apply::PairError>(())
/// ```
#[derive(Debug)]
pub struct Pairing<'k> {
    known: &'k Documents,
    namespace: &'k str,
    /// Old objects that have no new one yet.
    before: HashMap<Key, usize>,
    /// New objects that have a name.
    seen: HashMap<Key, usize>,
}

impl<'k> Pairing<'k> {
    /// Starts without objects. `known` has the CRDs; `namespace` is the default for objects that name none.
    #[must_use]
    pub fn new(known: &'k Documents, namespace: &'k str) -> Self {
        Self { known, namespace, before: HashMap::new(), seen: HashMap::new() }
    }

    /// Adds the old object at `position`. What has no name cannot be replaced. Of two, the later counts.
    pub fn add_old(&mut self, position: usize, object: &Value) {
        if let Ok(identity) = Identity::of(object, self.known, self.namespace) {
            self.before.insert(identity.key(), position);
        }
    }

    /// Adds the new object at `position`; returns its identity, and the position of the old one that it replaces.
    ///
    /// # Errors
    /// If it cannot be applied together with the previous ones.
    pub fn add_new(
        &mut self,
        position: usize,
        object: &Value,
    ) -> Result<(Identity, Option<usize>), PairError> {
        let identity = Identity::of(object, self.known, self.namespace)?;
        let generated = is_generated(object);
        if !generated {
            let first = *self.seen.entry(identity.key()).or_insert(position);
            if first != position {
                return Err(PairError::Duplicate { identity: identity.to_string(), first });
            }
        }
        let old = self.before.remove(&identity.key()).filter(|_| !generated);
        Ok((identity, old))
    }

    /// Positions of the old objects that have no new one.
    #[must_use]
    pub fn left(self) -> Vec<usize> {
        let mut left: Vec<usize> = self.before.into_values().collect();
        left.sort_unstable();
        left
    }
}

impl Pair {
    /// Builds the pair of the new object at `position` and of the old one that it replaces.
    #[must_use]
    pub fn new(
        identity: Identity,
        position: usize,
        new: &Arc<Value>,
        old: Option<&Arc<Value>>,
        known: &Documents,
    ) -> Self {
        let old = old.map(|old| identity.located(&in_version(old, &identity.kind, known)));
        Self { new: identity.located(new), identity, position, old }
    }
}

/// Group, kind, namespace, name.
type Key = (String, String, String, String);

impl Identity {
    /// # Errors
    /// If the object lacks an identifying field.
    pub fn of(object: &Value, known: &Documents, namespace: &str) -> Result<Self, PairError> {
        let text = |pointer: &str| pointer::text(object, pointer);
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        if api_version.is_empty() || kind.is_empty() {
            return Err(PairError::NoKind);
        }
        let kind = GroupVersionKind::from_api_version(api_version, kind);
        let name = match (text("/metadata/name"), text("/metadata/generateName")) {
            ("", "") => return Err(PairError::NoName),
            ("", prefix) => format!("{prefix}XXXXX"),
            (name, _) => name.to_owned(),
        };
        let namespace = match (known.scope_of(&kind), text("/metadata/namespace")) {
            (Scope::Cluster, _) => "",
            (Scope::Namespaced, "") => namespace,
            (Scope::Namespaced, own) => own,
        };
        Ok(Self { kind, namespace: namespace.to_owned(), name })
    }

    fn key(&self) -> Key {
        (self.kind.group.clone(), self.kind.kind.clone(), self.namespace.clone(), self.name.clone())
    }

    /// The object with its namespace written down, as requests have it.
    fn located(&self, object: &Arc<Value>) -> Arc<Value> {
        if self.namespace.is_empty() || object.pointer("/metadata/namespace").is_some_and(Value::is_string) {
            return Arc::clone(object);
        }
        let mut object = Value::clone(object);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("namespace".to_owned(), Value::from(self.namespace.as_str()));
        }
        Arc::new(object)
    }
}

impl std::fmt::Display for Identity {
    /// `ConfigMap default/a`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, namespace, name } = self;
        let slash = if namespace.is_empty() { "" } else { "/" };
        write!(f, "{} {namespace}{slash}{name}", kind.kind)
    }
}

fn is_generated(object: &Value) -> bool {
    pointer::text(object, "/metadata/name").is_empty()
}

/// Converts an old object to the requested version, as a server does. One that cannot be converted stays as it is.
fn in_version(old: &Arc<Value>, kind: &GroupVersionKind, known: &Documents) -> Arc<Value> {
    if old.get("apiVersion").and_then(Value::as_str) == Some(&kind.api_version()) {
        return Arc::clone(old);
    }
    known.convert(old, kind).map_or_else(|_| Arc::clone(old), Arc::new)
}
