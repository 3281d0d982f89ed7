//! The priority levels and flow schemas of every cluster, created at start. Existing ones are not changed.

use std::sync::Arc;

use admit_apimachinery::go;
use serde_json::{Value, json};

use super::Registry;
use super::bootstrap_policy::read;
use super::field_ownership::Ownership;
use super::update::Change;
use crate::call::WriteOptions;
use crate::codec::recheck;
use crate::object;
use crate::resources::Subresource;
use crate::status::Refusal;

static FLOWS: &str = include_str!("bootstrap_flows.yaml");

/// On objects that a server keeps as they are meant to be.
const UPDATED: &str = "apf.kubernetes.io/autoupdate-spec";

impl Registry {
    /// # Errors
    /// When the store does not take one of them.
    pub(crate) async fn create_flows(&self) -> Result<(), Refusal> {
        let served = self.served();
        for mut object in read(FLOWS) {
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
            let Some(info) = served.table.find_kind("flowcontrol.apiserver.k8s.io", "v1", kind) else {
                continue;
            };
            let call = self.own_call(info, "").admitted();
            let name = object::name(&object).to_owned();
            if self.store.latest(&call.key(&name)).is_some() {
                continue;
            }
            let annotations = object::member_mut(object::meta_mut(&mut object), "annotations");
            annotations.insert(UPDATED.to_owned(), "true".into());
            let level = object.pointer("/spec/priorityLevelConfiguration/name").and_then(Value::as_str);
            let status = level.map(|level| self.found(level));
            let received = recheck(info, None, object).map_err(|why| why.refusal(Refusal::internal))?;
            match self.create(&call, received.object, &WriteOptions::own()).await {
                Err(refusal) if refusal.reason() == "AlreadyExists" => continue,
                created => created.map(drop)?,
            }
            let Some(status) = status else { continue };
            let make = |live: &mut Arc<Value>| {
                let mut next = (**live).clone();
                object::set_field(&mut next, "status", Some(status.clone()));
                Ok(next)
            };
            let change = Change { make: &make, uid_is_precondition: false, ownership: Ownership::Tracked };
            let call = call.on(Some(Subresource::Status));
            self.change(&call, &name, &change, &WriteOptions::own()).await?;
        }
        Ok(())
    }

    /// The status of a schema whose level is there: the levels are created first.
    fn found(&self, level: &str) -> Value {
        let level = go::quote(level);
        let message = format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {level} and it exists"
        );
        json!({"conditions": [{
            "type": "Dangling", "status": "False", "lastTransitionTime": self.clock.stamp(),
            "reason": "Found", "message": message,
        }]})
    }
}
