//! The priority levels and flow schemas of every cluster, created at start. Existing ones are not changed.

use admit_apimachinery::go;
use futures::future::join_all;
use serde_json::{Value, json};

use super::Registry;
use super::bootstrap_policy::read;
use crate::call::{Call, WriteOptions};
use crate::codec::recheck;
use crate::object;
use crate::status::Refusal;

static FLOWS: &str = include_str!("bootstrap_flows.yaml");

/// On objects that a server keeps as they are meant to be.
const UPDATED: &str = "apf.kubernetes.io/autoupdate-spec";

/// Who makes them, and who says what became of them.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";

impl Registry {
    /// # Errors
    /// When the store does not take one of them.
    pub(crate) async fn create_flows(&self) -> Result<(), Refusal> {
        let served = self.served();
        // Written at once: a durable store then commits them together.
        let creations = read(FLOWS).into_iter().filter_map(|object| {
            let kind = object.get("kind").and_then(Value::as_str)?;
            let info = served.table.find_kind("flowcontrol.apiserver.k8s.io", "v1", kind)?;
            Some(self.create_flow(self.own_call(info, "").admitted(), object))
        });
        join_all(creations).await.into_iter().collect()
    }

    async fn create_flow(&self, call: Call, mut object: Value) -> Result<(), Refusal> {
        let name = object::name(&object).to_owned();
        if self.store.latest(&call.key(&name)).is_some() {
            return Ok(());
        }
        let annotations = object::member_mut(object::meta_mut(&mut object), "annotations");
        annotations.insert(UPDATED.to_owned(), "true".into());
        let level = object.pointer("/spec/priorityLevelConfiguration/name").and_then(Value::as_str);
        let status = level.map(|level| self.found(level));
        let received = recheck(&call.info, None, object).map_err(|why| why.refusal(Refusal::internal))?;
        match self.create(&call, received.object, &WriteOptions::own_as(PRODUCER)).await {
            Err(refusal) if refusal.reason() == "AlreadyExists" => return Ok(()),
            created => created.map(drop)?,
        }
        match status {
            Some(status) => self.apply_status(&call, &name, CONSUMER, status).await,
            None => Ok(()),
        }
    }

    /// The status of a schema whose level is there, as every level is that a schema names here.
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
