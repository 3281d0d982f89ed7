//! Creates the priority levels and flow schemas of every cluster at start, and maintains the condition `Dangling` of schemas.

use std::sync::Arc;

use admit_apimachinery::go;
use admit_apimachinery::pointer;
use futures::future::{BoxFuture, join_all};
use serde_json::{Value, json};

use super::Registry;
use super::bootstrap_policy::read;
use crate::call::{Call, WriteOptions};
use crate::codec::recheck;
use crate::object;
use crate::resources::Subresource;
use crate::status::Refusal;

static FLOWS: &str = include_str!("bootstrap_flows.yaml");

/// The field manager of these objects, beside that of the condition.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";

const SCHEMAS: &str = "flowschemas";
const LEVELS: &str = "prioritylevelconfigurations";
/// The type of the condition.
const DANGLING: &str = "Dangling";

/// The annotation of objects that the server maintains.
const UPDATED: &str = "apf.kubernetes.io/autoupdate-spec";

impl Registry {
    /// # Errors
    /// If the store refuses one of them.
    pub(crate) async fn create_flows(&self) -> Result<(), Refusal> {
        let served = self.served();
        // Written concurrently, so that a durable store commits them together.
        let creations = read(FLOWS).into_iter().filter_map(|object| {
            let kind = object.get("kind").and_then(Value::as_str)?;
            let info = served.table.find_kind(GROUP, "v1", kind)?;
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
        // All levels that schemas name here are created, too.
        let status = level(&object).map(|level| self.dangling(level, true));
        let received = recheck(&call.info, None, object).map_err(|why| why.refusal(Refusal::internal))?;
        match self.create(&call, received.object, &WriteOptions::of(PRODUCER)).await {
            Err(refusal) if refusal.reason() == "AlreadyExists" => return Ok(()),
            created => created.map(drop)?,
        }
        let Some(status) = status else { return Ok(()) };
        let call = call.on(Some(Subresource::Status));
        self.apply_status(&call, &name, &status, CONSUMER).await
    }

    /// Updates the condition `Dangling` after the write or removal of a schema or a level: of that schema, or of all schemas for
    /// a level.
    pub(super) fn settle_flows<'r>(&'r self, call: &'r Call, name: &'r str) -> BoxFuture<'r, ()> {
        Box::pin(async move {
            // The creation at start sets the condition itself.
            let is_other = call.info.group != GROUP || !call.info.builtin || call.subresource.is_some();
            if is_other || call.admitted {
                return;
            }
            let served = self.served();
            let Some(schemas) = served.table.find(GROUP, "v1", SCHEMAS) else { return };
            let Some(levels) = served.table.find(GROUP, "v1", LEVELS) else { return };
            let (schemas, levels) =
                (self.own_call(schemas, "").admitted(), self.own_call(levels, "").admitted());
            let concerned: Vec<Arc<Value>> = if call.info.plural == SCHEMAS {
                self.store.latest(&schemas.key(name)).into_iter().map(|stored| stored.object).collect()
            } else {
                let kept = self.stored_objects(&schemas.info.storage_key, None);
                kept.iter().map(|kept| kept.object.values()).collect()
            };
            for schema in concerned {
                let Some(level) = level(&schema) else { continue };
                let status = self.dangling(level, self.store.latest(&levels.key(level)).is_some());
                if says(&schema, &status) {
                    continue;
                }
                let (name, about) = (object::name(&schema), schemas.on(Some(Subresource::Status)));
                if let Err(refusal) = self.apply_status(&about, name, &status, CONSUMER).await {
                    tracing::debug!(error = %refusal, name, "the status of a flow schema is not written");
                }
            }
        })
    }

    /// Builds the status of a schema whose level exists or does not.
    fn dangling(&self, level: &str, is_there: bool) -> Value {
        let level = go::quote(level);
        let (status, reason, what) = match is_there {
            true => ("False", "Found", "it exists"),
            false => ("True", "NotFound", "there is no such object"),
        };
        let joined = if is_there { "and" } else { "but" };
        let message = format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {level} {joined} {what}"
        );
        json!({"conditions": [{
            "type": DANGLING, "status": status, "lastTransitionTime": self.clock.stamp(),
            "reason": reason, "message": message,
        }]})
    }
}

/// Returns the level that a schema names.
fn level(schema: &Value) -> Option<&str> {
    schema.pointer("/spec/priorityLevelConfiguration/name").and_then(Value::as_str)
}

/// Returns whether the schema has the condition, ignoring its transition time.
fn says(schema: &Value, status: &Value) -> bool {
    let wanted = &status["conditions"][0];
    let own = pointer::items(schema, "/status/conditions").iter().find(|own| own["type"] == DANGLING);
    own.is_some_and(|own| ["status", "message"].iter().all(|field| own.get(*field) == wanted.get(*field)))
}
