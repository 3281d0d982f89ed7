//! Compiles policy documents into a [`PolicySet`] and decides requests with it. Pure functions, no I/O.
//!
//! ```text
//! documents ──PolicySet::load──► PolicySet ──decide(Request, Host)──► Decision
//!             every mistake of         matching, params, CEL             denial · warnings · annotations
//!             every document                                             and what each rule said
//! ```
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `deadline` | when long work is interrupted | nothing of ours |
//! | [`release`] | which Kubernetes release is imitated | nothing of ours |
//! | `recent` | a bounded cache of values | nothing of ours |
//! | `read` | texts to JSON, manifests with positions, typed fields, paths | nothing of ours |
//! | `patch` | JSON patches and merge patches | deadline, read |
//! | `request` | the request or review, and the interfaces to authorizer, exceptions, namespaces and params | deadline, read |
//! | `report` | the decision, and the recorded evaluation of expressions | deadline, request |
//! | `schema` | defaults, pruning and validation by a structural schema, metadata of objects | deadline, read, release |
//! | `exception` | which requests are admitted although policies deny them, and until when | read, report, request, schema |
//! | `crd` | registration of definitions; defaulting and validation of custom resources | deadline, read, recent, release, report, schema |
//! | `matching` | which requests a policy, a binding or a webhook matches | deadline, read, request |
//! | `vap` | what a ValidatingAdmissionPolicy says of a request, and a MutatingAdmissionPolicy makes of it | deadline, exception, matching, patch, read, release, report, request, schema |
//! | `webhook` | whether a webhook configuration is valid, and which webhooks a request reaches | matching, read, report, request, schema, vap |
//! | [`server_config`] | whether the configuration of an API server is valid, as far as it has expressions, and what it says of tokens and requests | read, release, report, request, schema |
//! | `devices` | whether an expression selects devices, and which devices of slices classes and claims select | read, report, request |
//! | `set` | all policies with their bindings and documents; loading, and the decision | crd, deadline, devices, exception, matching, read, report, request, schema, server_config, vap, webhook |
//! | `tools` | test suites, lint, applied manifests, generated suites, single expressions | crd, devices, matching, patch, read, recent, release, report, request, schema, server_config, set, vap, webhook |
//!
//! `crd` and `vap` do not know each other.
//!
//! ```
//! use admit_policy::{LoadOptions, PolicySet, Request};
//! use serde_json::json;
//!
//! let policy = "
//! apiVersion: admissionregistration.k8s.io/v1
//! kind: ValidatingAdmissionPolicy
//! metadata: {name: few-replicas}
//! spec:
//!   matchConstraints:
//!     resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
//!   validations: [{expression: object.spec.replicas <= 5, message: too many}]
//! ---
//! apiVersion: admissionregistration.k8s.io/v1
//! kind: ValidatingAdmissionPolicyBinding
//! metadata: {name: few-replicas}
//! spec: {policyName: few-replicas, validationActions: [Deny]}
//! ";
//! let set = PolicySet::load_files([("policy.yaml", policy)], LoadOptions::default()).unwrap();
//! let request = json!({
//!     "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
//!     "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
//!     "operation": "CREATE",
//!     "name": "web",
//!     "namespace": "shop",
//!     "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 9}},
//! });
//! let decision = set.decide(&Request::from_value(&request)?, set.documents());
//! assert!(decision.denial.is_some_and(|denial| denial.message.ends_with("denied request: too many")));
//! # Ok::<(), admit_policy::ReviewError>(())
//! ```
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

pub mod crd;
mod deadline;
mod devices;
mod exception;
pub mod matching;
pub mod patch;
mod read;
mod recent;
pub mod release;
mod report;
mod request;
pub mod schema;
pub mod server_config;
mod set;
mod tools;
mod vap;
pub mod webhook;

// The main way: documents to a set, a request and its environment to a decision.
pub use self::report::decision::{
    Decision, Denial, Enforcement, Excepted, PolicyOutcome, Reason, RuleOutcome, RulePath, Skipped, Status,
    StatusDetails, Verdict,
};
pub use self::request::host::{Access, AccessAttributes, Host, HostError, Scope};
pub use self::request::{
    GroupVersionKind, GroupVersionResource, Operation, Request, ReviewError, ReviewErrorKind, UserInfo,
};
pub use self::set::documents::Documents;
pub use self::set::load::LoadOptions;
pub use self::set::{LoadErrorKind, PolicySet, PolicySetBuilder};
pub use admit_apimachinery::names::NameRule;
pub use admit_apimachinery::status::StatusCause;

// The contents of a set, and what it needs from its callers.
pub use self::read::decode::{DecodeError, FieldsError};
pub use self::read::object::Object;
pub use self::read::path::Path;
pub use self::request::access::{ANSWER_FIELDS, AccessAnswers};
pub use self::request::review::{Arena, NoReview, Review};
pub use self::set::builtins::{Builtins, Prepared, StrategicError};
pub use self::set::catalogue::{
    Catalogue, Connection, FieldShape, FieldType, Presence, ServedKind, Shape, StableFields,
};
pub use self::set::known::KnownKinds;
pub use self::set::plugins::{Plugged, Plugins};
pub use self::vap::{
    Binding, ConditionsError, ExpressionError, FailurePolicy, MatchConditions, Missed, Mutated,
    MutatingPolicy, NotFoundAction, OutOfBudget, ParamRef, ParamSelector, Policy, PolicyPart, PolicyScope,
    Reinvocation, Schemas, TypeWarning, Types, Unmade,
};

pub use self::exception::is_exception;
pub use self::request::exceptions::{Exceptions, PolicyException};

// Observing and interrupting evaluations.
pub use self::deadline::{Deadline, Interrupted, Pace, asking, unasked};
pub use self::report::options::EvalOptions;
pub use self::report::recording::{
    Expression, ExpressionId, Keep, ObjectChange, Origin, Purse, Recorded, RecordedOutcome, RecordedTrace,
    Recording, Spent,
};

// Expressions of other objects.
pub use self::devices::{
    Device, DeviceError, DeviceFeatures, Devices, MemberError, NoSelection, SELECTOR_LIMIT, Selected,
    SelectedBy, SelectionError, Selector, SelectorError, SelectorProblem, device_selectors, selector_cost,
    selector_env, selector_problem,
};

// Subjects with a page of their own.
pub use self::read::{json, manifest};
pub use self::report::explanation;
pub use self::request::rbac;
pub use self::tools::eval::{AdhocError, Answer, evaluate, evaluate_recorded};
pub use self::tools::system_fields::with_system_fields;
pub use self::tools::{apply, init, lint, suite};

/// The examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
