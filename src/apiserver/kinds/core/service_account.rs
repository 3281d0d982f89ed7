//! Defines the strategy of ServiceAccounts, of which only metadata is validated. Read from pkg/registry/core/serviceaccount of
//! Kubernetes 1.36.

use serde_json::{Map, Value};

use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "ServiceAccount",
    habits: &[Habit::AnswersDeleted, Habit::ObjectAgain],
    prepare_create: Some(name_secrets),
    prepare_update: Some(|account, _| name_secrets(account)),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Reduces references to secrets to their names, since they are in the account's namespace.
fn name_secrets(account: &mut Value) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten() {
        let name = secret.get_mut("name").map(Value::take).filter(Value::is_string);
        *secret =
            Value::Object(name.map(|name| ("name".to_owned(), name)).into_iter().collect::<Map<_, _>>());
    }
}

/// Warns about a deprecated annotation, if it is new.
fn warnings(account: &Value, old: Option<&Value>) -> Vec<String> {
    let has = |account: &Value| object::meta_map(account, "annotations").any(|(name, _)| name == MOUNTABLE);
    if !has(account) || old.is_some_and(has) {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted \
         secrets"
    )]
}
