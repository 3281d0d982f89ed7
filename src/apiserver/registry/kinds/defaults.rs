//! Default values of kinds that have no room yet, and those of all kinds at fixed paths.

use serde_json::{Value, json};

use super::{fixed_defaults, namespace};
use crate::kinds::shared::defaults::{each, set_absent};
use crate::resources::ResourceInfo;

/// Fills in what upstream's defaulting functions fill in for this kind.
pub(super) fn fill(info: &ResourceInfo, object: &mut Value) {
    if !info.builtin {
        return;
    }
    fixed_defaults::fill(info, object);
    match (info.group.as_str(), info.kind.as_str()) {
        ("", "Namespace") => namespace::name_label(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("admissionregistration.k8s.io", kind) => admission(kind, object),
        _ => {}
    }
}

fn definition(definition: &mut Value) {
    let names = &mut definition["spec"]["names"];
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !kind.is_empty() {
        set_absent(
            names,
            &[("singular", kind.to_lowercase().into()), ("listKind", format!("{kind}List").into())],
        );
    }
    set_absent(&mut definition["spec"], &[("conversion", json!({"strategy": "None"}))]);
}

fn admission(kind: &str, object: &mut Value) {
    match kind {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            for webhook in each(object, "webhooks") {
                set_absent(
                    webhook,
                    &[
                        ("failurePolicy", json!("Fail")),
                        ("matchPolicy", json!("Equivalent")),
                        ("namespaceSelector", json!({})),
                        ("objectSelector", json!({})),
                        ("timeoutSeconds", json!(10)),
                    ],
                );
                if kind == "MutatingWebhookConfiguration" {
                    set_absent(webhook, &[("reinvocationPolicy", json!("Never"))]);
                }
                if let Some(service) = webhook.pointer_mut("/clientConfig/service") {
                    set_absent(service, &[("port", json!(443))]);
                }
                rule_scopes(webhook, "rules");
            }
        }
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
            let spec = &mut object["spec"];
            set_absent(spec, &[("failurePolicy", json!("Fail"))]);
            match_resources(spec, "matchConstraints");
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            match_resources(&mut object["spec"], "matchResources")
        }
        _ => {}
    }
}

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

fn rule_scopes(owner: &mut Value, field: &str) {
    for rule in each(owner, field) {
        set_absent(rule, &[("scope", json!("*"))]);
    }
}
