//! Generates a test suite to start from: a minimal object of everything that a set matches, with the current verdict.
//!
//! Input: a compiled set. Output: a Suite document that passes as it is, for its author to extend.

mod builtin;
mod sample;

use serde_json::{Map, Value, json};

use crate::crd::{self, CompiledCrd, CrdVersion};
use crate::matching::{Rule, ScopeRule};
use crate::request::host::Scope;
use crate::request::{GroupVersionKind, Operation};
use crate::schema::Schema;
use crate::set::PolicySet;
use crate::tools::suite::{self, API_VERSION, Outcome, Suite};
use crate::vap::Policy;

/// Generates the suite for everything in `set`; `documents` are the files to load, relative to the suite. None where there is neither a
/// definition nor a policy.
///
/// ```
/// use admit_policy::{LoadOptions, PolicySet, init, suite};
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
/// let document = init::suite(&set, &["policies.yaml".to_owned()]).ok_or("nothing to test")?;
/// let suite = suite::Suite::decode(&document)?;
/// assert!(suite.cases.iter().all(|case| suite::run(case, &set).mismatches.is_empty()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn suite(set: &PolicySet, documents: &[String]) -> Option<Value> {
    let definitions = set.documents().crds().iter().flat_map(|crd| of_definition(crd));
    let policies = set.policies().map(|(policy, _)| of_policy(policy, set));
    let cases: Vec<Fields> = definitions.chain(policies).collect();
    if cases.is_empty() {
        return None;
    }
    let decoded = Suite::decode(&document(documents, cases.clone())).ok()?;
    let answered = cases.into_iter().zip(&decoded.cases).map(|(mut draft, case)| {
        let result = suite::run(case, set);
        // An object that every server rejects is denied before policies run, with the server's message as the expectation.
        let outcome = if result.refused { Outcome::Deny } else { result.outcome };
        let expect = if result.message.is_empty() {
            json!(outcome.as_str())
        } else {
            json!({"outcome": outcome.as_str(), "message": result.message})
        };
        draft.insert("expect".to_owned(), expect);
        draft
    });
    Some(document(documents, answered.collect()))
}

/// Generates a minimal value that a schema accepts, as far as possible: patterns and rules are not solved.
///
/// ```
/// use admit_policy::{Path, init, schema};
/// use serde_json::json;
///
/// let properties = json!({"size": {"type": "integer", "minimum": 3}, "name": {"type": "string"}});
/// let schema = json!({"type": "object", "properties": properties, "required": ["size"]});
/// assert_eq!(init::sample(&schema::parse(&schema, &Path::Nil).unwrap()), json!({"size": 3}));
/// ```
#[must_use]
pub fn sample(schema: &Schema) -> Value {
    sample::of(schema)
}

/// Generates a minimal object of a built-in kind that a server accepts, as far as known, with a name and, if needed, a namespace.
///
/// ```
/// use admit_policy::{GroupVersionKind, init};
///
/// let pod = init::least(&GroupVersionKind::new("", "v1", "Pod"), true);
/// assert_eq!(pod["spec"]["containers"][0]["name"], "main");
/// assert_eq!(pod["metadata"]["namespace"], "default");
/// ```
#[must_use]
pub fn least(kind: &GroupVersionKind, namespaced: bool) -> Value {
    let metadata = metadata(builtin::name(&kind.kind), !namespaced);
    let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata});
    if let Some(fields) = object.as_object_mut() {
        fields.extend(builtin::fields(&kind.kind));
    }
    object
}

/// A case as written.
type Fields = Map<String, Value>;

fn document(documents: &[String], cases: Vec<Fields>) -> Value {
    let cases: Vec<Value> = cases.into_iter().map(Value::Object).collect();
    if documents.is_empty() {
        return json!({"apiVersion": API_VERSION, "kind": "Suite", "cases": cases});
    }
    json!({"apiVersion": API_VERSION, "kind": "Suite", "documents": documents, "cases": cases})
}

/// A creation, and an update that changes nothing, for every version that is served.
fn of_definition(crd: &CompiledCrd) -> Vec<Fields> {
    let served = crd.definition().versions.iter().filter(|version| version.served);
    let cases = served.filter_map(|version| {
        let compiled = crd.version(&version.name)?;
        let object = custom_resource(crd, compiled);
        let (kind, version) = (&crd.definition().names.kind, &version.name);
        Some([
            draft(&format!("a new {kind} ({version})"), &object, None),
            draft(&format!("a {kind} that does not change ({version})"), &object, Some(&object)),
        ])
    });
    cases.flatten().collect()
}

/// The expectation is a placeholder.
fn draft(name: &str, object: &Value, old: Option<&Value>) -> Fields {
    let mut case = Fields::new();
    case.insert("name".to_owned(), json!(name));
    if let Some(old) = old {
        case.insert("oldObject".to_owned(), old.clone());
    }
    case.insert("object".to_owned(), object.clone());
    case.insert("expect".to_owned(), json!(Outcome::Allow.as_str()));
    case
}

fn custom_resource(crd: &CompiledCrd, version: &CrdVersion) -> Value {
    let definition = crd.definition();
    let mut object = Fields::new();
    object.insert("apiVersion".to_owned(), json!(format!("{}/{}", definition.group, version.name())));
    object.insert("kind".to_owned(), json!(definition.names.kind));
    object.insert("metadata".to_owned(), metadata("sample", definition.scope == crd::Scope::Cluster));
    if let Value::Object(required) = sample::of(version.schema()) {
        for (key, value) in required {
            object.entry(key).or_insert(value);
        }
    }
    if let Some(spec) = version.schema().properties.get("spec") {
        object.entry("spec").or_insert_with(|| sample::of(spec));
    }
    Value::Object(object)
}

fn metadata(name: &str, cluster: bool) -> Value {
    if cluster { json!({"name": name}) } else { json!({"name": name, "namespace": "default"}) }
}

/// The first request that the policy's first rule speaks about.
fn of_policy(policy: &Policy, set: &PolicySet) -> Fields {
    let everything = Rule::default();
    let rule = policy.constraints.rules.first().unwrap_or(&everything);
    let operation = rule.operations.as_deref().and_then(<[_]>::first).copied().unwrap_or(Operation::Create);
    let resource = rule.resources.first().map_or("*", String::as_str);
    let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let plural = if plural == "*" { "configmaps" } else { plural };
    let group = rule.groups.first().map_or("*", String::as_str);
    let object = defined(set, group, plural).unwrap_or_else(|| of_builtin(set, rule, group, plural));
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let name = format!("{}: {} of a {kind}", policy.name, operation.as_str());
    let old = (operation != Operation::Create).then_some(&object);
    let mut case = draft(&name, &object, old);
    case.insert("policies".to_owned(), json!([&*policy.name]));
    case.insert("operation".to_owned(), json!(operation.as_str()));
    case.insert("resource".to_owned(), json!(plural));
    if !matches!(subresource, "" | "*") {
        case.insert("subresource".to_owned(), json!(subresource));
    }
    case
}

fn defined(set: &PolicySet, group: &str, plural: &str) -> Option<Value> {
    let serves = |crd: &&std::sync::Arc<CompiledCrd>| {
        crd.definition().group == group && crd.definition().names.plural == plural
    };
    let crd = set.documents().crds().iter().find(serves)?;
    Some(custom_resource(crd, crd.versions().first()?))
}

/// Builds an object of a kind of which only the resource is known.
fn of_builtin(set: &PolicySet, rule: &Rule, group: &str, plural: &str) -> Value {
    let version = rule.versions.first().map_or("*", String::as_str);
    let known = set.documents().builtins().and_then(|kinds| kinds.kind_of(group, version, plural));
    let kind = known.unwrap_or_else(|| {
        let or = |asked: &str, other: &str| if asked == "*" { other.to_owned() } else { asked.to_owned() };
        GroupVersionKind::new(or(group, ""), or(version, "v1"), builtin::kind_of(plural))
    });
    let scope = set.documents().scope_of(&kind);
    let cluster = rule.scope == ScopeRule::Cluster || scope == Scope::Cluster;
    least(&kind, !cluster)
}
