//! Creates the default RBAC roles and bindings of every cluster at start, and completes existing ones that lack
//! something, as `reconciled` decides.

mod reconciled;

use std::sync::{Arc, LazyLock};

use futures::future::join_all;
use serde_json::{Map, Value, json};

use self::reconciled::{Reconciled, reconciled};
use super::Registry;
use super::field_ownership::Ownership;
use super::update::Change;
use crate::call::{Call, DeleteOptions, WriteOptions};
use crate::codec::{self, Body, Format};
use crate::conversion::Conversions;
use crate::emptied::Emptied;
use crate::identity::Identity;
use crate::object;
use crate::resources::ResourceInfo;
use crate::status::Refusal;
use crate::warning::Warnings;

static DEFAULTS: [&str; 3] = [
    include_str!("bootstrap_policy.yaml"),
    include_str!("bootstrap_components.yaml"),
    include_str!("bootstrap_controllers.yaml"),
];

/// The prefix of a controller's cluster role; the rest is the name of its service account.
const CONTROLLER: &str = "system:controller:";

const GROUP: &str = "rbac.authorization.k8s.io";

impl Registry {
    /// # Errors
    /// If the store refuses one of them.
    pub(crate) async fn create_default_roles(&self) -> Result<(), Refusal> {
        let served = self.served();
        // Written concurrently, so that a durable store commits them together.
        let creations = OBJECTS.iter().filter_map(|object| {
            let kind = object.get("kind").and_then(Value::as_str)?;
            let info = served.table.find_kind(GROUP, "v1", kind)?;
            Some(self.ensure_default(Arc::clone(info), object.clone()))
        });
        join_all(creations).await.into_iter().collect()
    }

    async fn ensure_default(&self, info: Arc<ResourceInfo>, mut object: Value) -> Result<(), Refusal> {
        let call = Call {
            info,
            custom: None,
            namespace: object::namespace(&object).to_owned(),
            subresource: None,
            identity: Identity::admin(),
            warnings: Warnings::default(),
            emptied: Emptied::default(),
            conversions: Conversions::default(),
            clock: self.clock.clone(),
            // Admission is skipped, as the default roles of a cluster are not subject to it.
            admitted: true,
        };
        let labels = object::member_mut(object::meta_mut(&mut object), "labels");
        labels.insert("kubernetes.io/bootstrapping".to_owned(), "rbac-defaults".into());
        let annotations = object::member_mut(object::meta_mut(&mut object), "annotations");
        annotations.insert("rbac.authorization.kubernetes.io/autoupdate".to_owned(), "true".into());
        let name = object::name(&object).to_owned();
        let Some(live) = self.store.latest(&call.key(&name)) else {
            return self.create_default(&call, object).await;
        };
        match reconciled(&live.object, &object) {
            Reconciled::Kept => Ok(()),
            Reconciled::Changed(_) => self.complete_default(&call, &name, &object).await,
            Reconciled::Replaced => {
                let uid = Some(object::uid(&live.object).to_owned());
                let options = DeleteOptions { uid, ..DeleteOptions::default() };
                self.delete(&call, &name, &options).await?;
                self.create_default(&call, object).await
            }
        }
    }

    async fn create_default(&self, call: &Call, object: Value) -> Result<(), Refusal> {
        let received =
            codec::recheck(&call.info, None, object).map_err(|why| why.refusal(Refusal::internal))?;
        let (mut object, options) = (received.object, WriteOptions::own());
        // Ownership is computed directly: tracking so many objects would take a third of the start.
        let fields = json!([{
            "manager": options.manager, "operation": "Update", "apiVersion": call.info.api_version(),
            "time": call.clock.stamp(), "fieldsType": "FieldsV1", "fieldsV1": owned(&object),
        }]);
        object::set_meta(&mut object, "managedFields", Some(fields));
        match self.create_as(call, object, &options, Ownership::Settled).await {
            Err(refusal) if refusal.reason() != "AlreadyExists" => Err(refusal),
            _ => Ok(()),
        }
    }

    async fn complete_default(&self, call: &Call, name: &str, expected: &Value) -> Result<(), Refusal> {
        let make = |live: &mut Arc<Value>| {
            Ok(match reconciled(live, expected) {
                Reconciled::Changed(wanted) => wanted,
                Reconciled::Kept | Reconciled::Replaced => (**live).clone(),
            })
        };
        let change = Change { make: &make, uid_is_precondition: false, ownership: Ownership::Tracked };
        self.change(call, name, &change, &WriteOptions::own()).await.map(drop)
    }
}

/// The default objects, with the bindings of controllers to their roles: parsed once per process.
static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let mut all: Vec<Value> = DEFAULTS.into_iter().flat_map(read).collect();
    let bindings: Vec<Value> = all.iter().filter_map(controller_binding).collect();
    all.extend(bindings);
    all
});

fn controller_binding(role: &Value) -> Option<Value> {
    let name = object::name(role);
    let account = name.strip_prefix(CONTROLLER)?;
    object::namespace(role).is_empty().then(|| {
        json!({
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}],
        })
    })
}

/// Returns the fields of a role or binding, all owned by its creator: labels, annotations and the aggregation rule by
/// member, the rest as a whole.
fn owned(object: &Value) -> Value {
    let members = |value: &Value| -> Map<String, Value> {
        let own = |(name, _): (&String, &Value)| (format!("f:{name}"), json!({}));
        [(".".to_owned(), json!({}))]
            .into_iter()
            .chain(value.as_object().into_iter().flatten().map(own))
            .collect()
    };
    let mut fields = Map::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        let set = match name.as_str() {
            "apiVersion" | "kind" => continue,
            _ if value.is_null() => continue,
            "metadata" => {
                let maps = value.as_object().into_iter().flatten().filter(|(_, value)| value.is_object());
                maps.map(|(name, map)| (format!("f:{name}"), Value::Object(members(map)))).collect()
            }
            "aggregationRule" => members(value),
            _ => Map::new(),
        };
        fields.insert(format!("f:{name}"), Value::Object(set));
    }
    Value::Object(fields)
}

/// Parses the objects of a list.
pub(super) fn read(list: &'static str) -> Vec<Value> {
    let body = Body { format: Format::Yaml, bytes: list.into() };
    match codec::parse(&body).map(|document| document.value) {
        Ok(Value::Array(objects)) => objects,
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_default_binding_refers_to_a_default_role() {
        let all = &*OBJECTS;
        let has = |binding: &Value| {
            let reference = &binding["roleRef"];
            all.iter().any(|object| {
                let same_place = reference["kind"] == "ClusterRole"
                    || object::namespace(object) == object::namespace(binding);
                same_place
                    && object["kind"] == reference["kind"]
                    && object["metadata"]["name"] == reference["name"]
            })
        };
        let bindings: Vec<&Value> = all.iter().filter(|object| object.get("roleRef").is_some()).collect();
        assert!(bindings.len() > 50 && bindings.iter().all(|binding| has(binding)));
    }

    #[test]
    fn every_list_is_read_and_no_object_is_there_twice() {
        for list in DEFAULTS {
            let written = list.lines().filter(|line| line.starts_with("- kind: ")).count();
            assert_eq!(read(list).len(), written);
        }
        let all = &*OBJECTS;
        let told: BTreeSet<String> = all
            .iter()
            .map(|object| {
                format!("{} {}/{}", object["kind"], object::namespace(object), object::name(object))
            })
            .collect();
        assert_eq!(told.len(), all.len());
        // The only fields of a rule; any other is a typing error.
        let known = ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"];
        let rules = all.iter().filter_map(|object| object.get("rules")?.as_array()).flatten();
        for field in rules.filter_map(Value::as_object).flat_map(|rule| rule.keys()) {
            assert!(known.contains(&field.as_str()), "{field}");
        }
    }
}
