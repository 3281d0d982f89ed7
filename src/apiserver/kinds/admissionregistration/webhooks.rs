//! Configurations of webhooks that validate or mutate. Those who compile them say what is wrong with them.

use admit_policy::webhook::{Configuration, Kind};
use serde_json::{Value, json};

use super::{rule_scopes, warnings};
use crate::kinds::shared::defaults::{each, set_absent};
use crate::kinds::{Habit, Strategy};
use crate::status::{Causes, causes};

/// Those of policies, and one more.
const HABITS: &[Habit] = &[Habit::NeedsVersion, Habit::ChangeOnce, Habit::ObjectAgain, Habit::CountsEmpty];

pub(super) const VALIDATING: Strategy = Strategy {
    kind: "ValidatingWebhookConfiguration",
    habits: HABITS,
    default: Some(|_, configuration| each(configuration, "webhooks").for_each(default)),
    compile: Some(|configuration, stored| compile(Kind::Validating, configuration, stored)),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

pub(super) const MUTATING: Strategy = Strategy {
    kind: "MutatingWebhookConfiguration",
    habits: HABITS,
    default: Some(|_, configuration| {
        for webhook in each(configuration, "webhooks") {
            default(webhook);
            set_absent(webhook, &[("reinvocationPolicy", json!("Never"))]);
        }
    }),
    compile: Some(|configuration, stored| compile(Kind::Mutating, configuration, stored)),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

fn default(webhook: &mut Value) {
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
    if let Some(service) = webhook.pointer_mut("/clientConfig/service") {
        set_absent(service, &[("port", json!(443))]);
    }
    rule_scopes(webhook, "rules");
}

fn compile(kind: Kind, configuration: &Value, stored: Option<&Value>) -> Causes {
    let errors = match stored {
        None => Configuration::compile(kind, configuration).err(),
        Some(stored) => Configuration::compile_update(kind, configuration, stored).err(),
    };
    causes(&errors.unwrap_or_default())
}
