//! Policies that validate or mutate, and their bindings. Those who compile them say what is wrong with them.

use admit_apimachinery::field_error::FieldError;
use admit_policy::{Binding, MutatingPolicy, Policy};
use serde_json::{Value, json};

use super::{HABITS, policy_status, rule_scopes, warnings};
use crate::kinds::Strategy;
use crate::kinds::shared::defaults::set_absent;
use crate::status::{Causes, causes};

pub(super) const VALIDATING: Strategy = Strategy {
    kind: "ValidatingAdmissionPolicy",
    validate_status: Some(policy_status::validate),
    compile: Some(|policy, stored| match stored {
        None => found(Policy::compile(policy)),
        Some(stored) => found(Policy::compile_update(policy, stored)),
    }),
    ..POLICY
};

pub(super) const MUTATING: Strategy = Strategy {
    kind: "MutatingAdmissionPolicy",
    compile: Some(|policy, stored| match stored {
        None => found(MutatingPolicy::compile(policy)),
        Some(stored) => found(MutatingPolicy::compile_update(policy, stored)),
    }),
    ..POLICY
};

pub(super) const VALIDATING_BINDING: Strategy = Strategy {
    kind: "ValidatingAdmissionPolicyBinding",
    compile: Some(|binding, _| found(Binding::compile(binding))),
    ..BINDING
};

pub(super) const MUTATING_BINDING: Strategy = Strategy {
    kind: "MutatingAdmissionPolicyBinding",
    compile: Some(|binding, _| found(Binding::compile_mutating(binding))),
    ..BINDING
};

/// What both kinds of policies have in common.
const POLICY: Strategy = Strategy {
    habits: HABITS,
    default: Some(|_, policy| {
        let spec = &mut policy["spec"];
        set_absent(spec, &[("failurePolicy", json!("Fail"))]);
        match_resources(spec, "matchConstraints");
    }),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

/// What both kinds of bindings have in common.
const BINDING: Strategy = Strategy {
    habits: HABITS,
    default: Some(|_, binding| match_resources(&mut binding["spec"], "matchResources")),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

fn match_resources(spec: &mut Value, field: &str) {
    let Some(matching) = spec.get_mut(field) else { return };
    set_absent(
        matching,
        &[
            ("matchPolicy", json!("Equivalent")),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
        ],
    );
    rule_scopes(matching, "resourceRules");
    rule_scopes(matching, "excludeResourceRules");
}

fn found<T>(compiled: Result<T, Vec<FieldError>>) -> Causes {
    causes(&compiled.err().unwrap_or_default())
}
