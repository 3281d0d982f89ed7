//! Implements the lifecycle of CustomResourceDefinitions: from the stored object to served resources, conditions, and removal.

use std::sync::Arc;

use admit_apimachinery::pointer;
use serde_json::{Value, json};

use super::garbage_collector::AT_ONCE;
use super::{Registry, from_files};
use crate::call::{Call, DeleteOptions, WriteOptions};
use crate::conversion::{Counts, Webhook};
use crate::discovery::compare_versions;
use crate::identity::Identity;
use crate::kinds::apiextensions::custom_resource_definition::{
    CLEANUP, condition, set_condition, storage_version,
};
use crate::managed_fields::schema::Schema;
use crate::object;
use crate::resources::{PrinterColumn, ResourceInfo, Scope, Subresource};
use crate::served::{CustomKind, CustomVersion, ScalePaths, Served};
use crate::store::{Expect, Kept, Packed, Stored};

const STORAGE_KEY: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// Verbs of custom resources, in the order in which discovery lists them.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

impl Registry {
    /// Processes a write of a definition: establishes or ends it, and updates what is served. Returns the object that was stored then.
    pub(super) async fn after_write(&self, call: &Call, name: &str) -> Option<Kept> {
        let stored = self.store.kept(&call.key(name));
        if stored.as_ref().is_some_and(|stored| may_concern_collector(&stored.object)) {
            self.collector.poke();
        }
        self.admission.written(&call.info.storage_key);
        self.authorization.written(self, &call.key(name));
        self.settle_accounts(call, name).await;
        self.count_new_quota(call);
        self.settle_flows(call, name).await;
        if call.info.storage_key == STORAGE_KEY
            && let Some(definition) = &stored
        {
            self.settle_definition(call, name, definition.stored()).await;
        }
        stored
    }

    /// Completes for every CRD what its last write left undone if the process or the client ended
    /// in between.
    pub(crate) async fn settle_definitions(&self) {
        let Some(info) = definitions_row(&self.served()) else { return };
        let call = self.own_call(&info, "");
        for definition in self.stored_definitions() {
            let settled = condition(&definition.object, "Established") == Some("True");
            if !settled || object::is_terminating(&definition.object) {
                let name = object::name(&definition.object).to_owned();
                self.settle_definition(&call, &name, definition).await;
            }
        }
    }

    async fn settle_definition(&self, call: &Call, name: &str, definition: Stored) {
        if object::is_terminating(&definition.object) {
            self.serve_definitions();
            self.end_definition(call, name).await;
        } else {
            self.establish(call, &definition).await;
            self.reconsider(call, &definition.object["spec"]["group"]).await;
        }
        self.serve_stored().await;
    }

    fn stored_definitions(&self) -> Vec<Stored> {
        let kept = self.stored_objects(STORAGE_KEY, None);
        // Each change of a definition reads all of them.
        let pinned = |kept: Kept| Stored { revision: kept.revision, object: kept.object.pinned() };
        kept.into_iter().map(pinned).collect()
    }

    /// Updates the definitions of a group that wait for a name, after names became free.
    async fn reconsider(&self, call: &Call, group: &Value) {
        for definition in self.stored_definitions() {
            let object = &definition.object;
            let waits = condition(object, "NamesAccepted") == Some("False");
            if waits && object["spec"]["group"] == *group && !object::is_terminating(object) {
                self.establish(call, &definition).await;
            }
        }
    }

    /// Processes a removal: the last object of a terminating definition releases it.
    pub(super) async fn after_delete(&self, call: &Call, removed: &Value) {
        if call.info.storage_key == STORAGE_KEY {
            self.reconsider(call, &removed["spec"]["group"]).await;
            self.serve_stored().await;
            return;
        }
        self.collector.poke();
        self.admission.written(&call.info.storage_key);
        self.authorization.written(self, &call.key(object::name(removed)));
        self.settle_accounts(call, object::name(removed)).await;
        self.settle_flows(call, object::name(removed)).await;
        self.take_back(call, removed).await;
        self.settle_own_service(call, object::name(removed)).await;
        self.recount(call);
        if from_files::may_show(&call.info.storage_key) {
            self.show_freed(&call.info.storage_key, object::name(removed)).await;
        }
        let served = self.served();
        let Some(kind) = served.custom_kind(&call.info.group, &call.info.plural) else { return };
        if let (true, Some(info)) = (kind.terminating, definitions_row(&served)) {
            let about = call.about(&info, "");
            self.finish_definition(&about, &kind.definition, &call.info.storage_key).await;
        }
    }

    async fn establish(&self, call: &Call, definition: &Stored) {
        let all = self.stored_definitions();
        let all = all.iter().map(|stored| &*stored.object);
        let next = super::crd_status::settled(&definition.object, all, &self.clock);
        // A concurrent writer establishes it.
        self.put_status(call, object::name(&definition.object), definition, next).await;
    }

    /// Stores a definition with a new status, as the server itself.
    async fn put_status(&self, call: &Call, name: &str, definition: &Stored, mut next: Value) {
        if next == *definition.object {
            return;
        }
        let about = Call { subresource: Some(Subresource::Status), ..call.clone() };
        if let Err(refusal) = self.track(&about, Some(&definition.object), &mut next, &WriteOptions::own()) {
            tracing::error!(?refusal, definition = name, "the status of a definition is not written");
            return;
        }
        let expected = Expect::Revision(definition.revision);
        if let Err(error) = self.store.put(&call.key(name), expected, next).await {
            tracing::debug!(%error, definition = name, "the definition changed while its status was written");
        }
    }

    /// Deletes the objects of a terminating definition, and then the definition.
    async fn end_definition(&self, call: &Call, name: &str) {
        self.note_deletion(call, name).await;
        let Some(definition) = self.store.latest(&call.key(name)) else { return };
        let spec = &definition.object["spec"];
        let [group, plural] =
            [&spec["group"], &spec["names"]["plural"]].map(|name| name.as_str().unwrap_or_default());
        let key = storage_key(group, plural);
        // Objects exist whether or not a version is served; a definition that was never established has none.
        let served = self.served();
        if let Some(version) = served.custom_kind(group, plural).and_then(|kind| kind.versions.first()) {
            self.delete_objects(name, &key, &version.info).await;
        }
        self.finish_definition(call, name, &key).await;
    }

    /// Deletes the objects of the definition `name`, for which `info` is the row of any version.
    async fn delete_objects(&self, name: &str, key: &str, info: &Arc<ResourceInfo>) {
        for together in self.stored_objects(key, None).chunks(AT_ONCE) {
            let ended = together.iter().map(async |kept| {
                let head = kept.object.head();
                let about = Call { identity: Identity::admin(), ..self.own_call_about(info, &head) };
                let options = DeleteOptions::default();
                Box::pin(self.delete(&about, object::name(&head), &options)).await
            });
            for error in futures::future::join_all(ended).await.into_iter().filter_map(Result::err) {
                if error.code() != 404 {
                    tracing::warn!(%error, definition = name, "an object of a deleted definition is left");
                }
            }
        }
    }

    async fn note_deletion(&self, call: &Call, name: &str) {
        let key = call.key(name);
        let Some(definition) = self.store.latest(&key) else { return };
        let mut next = (*definition.object).clone();
        let message = "CustomResource deletion is in progress";
        set_condition(&mut next, &self.clock, "Terminating", "True", "InstanceDeletionInProgress", message);
        self.put_status(call, name, &definition, next).await;
    }

    async fn finish_definition(&self, call: &Call, name: &str, storage_key: &str) {
        if !self.store.is_empty(storage_key) {
            return;
        }
        let key = call.key(name);
        let Some(definition) = self.store.latest(&key) else { return };
        let mut next = (*definition.object).clone();
        let kept: Vec<&str> =
            object::finalizers(&definition.object).into_iter().filter(|name| *name != CLEANUP).collect();
        object::set_meta(&mut next, "finalizers", (!kept.is_empty()).then(|| json!(kept)));
        let written = if kept.is_empty() {
            self.store.delete(&key, definition.revision, next).await.map(|_| ())
        } else {
            self.store.put(&key, Expect::Revision(definition.revision), next).await.map(|_| ())
        };
        if let Err(error) = written {
            tracing::debug!(%error, definition = name, "the definition changed while it was ended");
        }
        self.reconsider(call, &definition.object["spec"]["group"]).await;
        self.serve_stored().await;
    }

    /// Serves what the stored CRDs define, and updates the APIServices.
    pub(crate) async fn serve_stored(&self) {
        self.serve_definitions();
        self.register_versions().await;
    }

    /// Serves what the stored CRDs define.
    pub(crate) fn serve_definitions(&self) {
        // The revision is read first: what is written while definitions are read belongs to a later table.
        let generation = self.store.revision();
        let definitions = self.stored_definitions();
        let served = self.served();
        let established =
            definitions.iter().filter(|stored| condition(&stored.object, "Established") == Some("True"));
        let kinds = established.map(|stored| {
            let known = served.custom_kind(
                stored.object["spec"]["group"].as_str().unwrap_or_default(),
                stored.object["spec"]["names"]["plural"].as_str().unwrap_or_default(),
            );
            // Rules are compiled once per change of their definition, not per change of any.
            known
                .filter(|known| known.revision == stored.revision)
                .cloned()
                .unwrap_or_else(|| Arc::new(custom_kind(stored, &self.converted)))
        });
        self.serve(Served::with_custom(kinds.collect(), generation));
    }
}

fn may_concern_collector(stored: &Packed) -> bool {
    // Unpacked values are at hand after most writes, so a large object is not parsed again.
    stored.unpacked().map_or_else(|| concerns_collector(&stored.head()), |object| concerns_collector(&object))
}

/// Returns whether the garbage collector may have to process the object.
fn concerns_collector(object: &Value) -> bool {
    object::is_terminating(object) || object::meta(object, "ownerReferences").is_some()
}

fn definitions_row(served: &Served) -> Option<Arc<ResourceInfo>> {
    served.table.find("apiextensions.k8s.io", "v1", "customresourcedefinitions").cloned()
}

fn custom_kind(stored: &Stored, counts: &Arc<Counts>) -> CustomKind {
    let definition = &*stored.object;
    let text = |path: &str| pointer::text(definition, path).to_owned();
    let terminating = object::is_terminating(definition);
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let compiled = crate::served::compiled(definition).map(Arc::new);
    let converter = compiled.as_ref().and_then(|compiled| Webhook::of(compiled, counts));
    let group = text("/spec/group");
    let versions = versions.into_iter().flatten().map(|version| {
        let name = version["name"].as_str().unwrap_or_default();
        let info = Arc::new(custom_row(definition, version));
        Arc::new(CustomVersion {
            served: version["served"] == true,
            terminating,
            scale: scale(version),
            typing: Schema::of_definition(version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null)),
            rules: compiled.as_ref().and_then(|compiled| compiled.version(name)).cloned(),
            compiled: compiled.clone(),
            converter: converter.clone(),
            info,
        })
    });
    CustomKind {
        definition: object::name(definition).to_owned(),
        revision: stored.revision,
        group,
        plural: text("/spec/names/plural"),
        terminating,
        versions: versions.collect(),
    }
}

/// Returns the storage key of a custom resource.
fn storage_key(group: &str, plural: &str) -> String {
    format!("{group}/{plural}")
}

fn custom_row(definition: &Value, version: &Value) -> ResourceInfo {
    let spec = &definition["spec"];
    let accepted = &definition["status"]["acceptedNames"];
    let name = |field: &str| accepted[field].as_str().unwrap_or_default().to_owned();
    let names = |field: &str| strings(&accepted[field]);
    let group = spec["group"].as_str().unwrap_or_default().to_owned();
    let mut subresources = Vec::new();
    if version["subresources"].get("status").is_some() {
        subresources.push(Subresource::Status);
    }
    if version["subresources"].get("scale").is_some() {
        subresources.push(Subresource::Scale);
    }
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    let mut row = ResourceInfo {
        version: version["name"].as_str().unwrap_or_default().to_owned(),
        first_stored: format!("{group}/{}", storage_version(definition)),
        storage_version: storage_version(definition),
        kind: name("kind"),
        list_kind: name("listKind"),
        singular: name("singular"),
        short_names: names("shortNames"),
        categories: names("categories"),
        scope: if spec["scope"] == "Namespaced" { Scope::Namespaced } else { Scope::Cluster },
        verbs: VERBS.map(str::to_owned).to_vec(),
        subresources,
        status_keeps: vec!["metadata".to_owned()],
        columns: version["additionalPrinterColumns"].as_array().into_iter().flatten().map(column).collect(),
        schema: version.pointer("/schema/openAPIV3Schema").cloned().map(Arc::new),
        storage_key: storage_key(&group, &name("plural")),
        selectable_fields: selectable
            .filter_map(|field| field["jsonPath"].as_str())
            .map(|path| path.trim_start_matches('.').to_owned())
            .collect(),
        deprecation: None,
        builtin: false,
        plural: name("plural"),
        group,
    };
    row.deprecation = deprecation(definition, &row, version);
    row
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn column(column: &Value) -> PrinterColumn {
    let text = |field: &str| column[field].as_str().unwrap_or_default().to_owned();
    PrinterColumn {
        name: text("name"),
        kind: text("type"),
        format: text("format"),
        description: text("description"),
        priority: column["priority"].as_i64().and_then(|priority| i32::try_from(priority).ok()).unwrap_or(0),
        json_path: text("jsonPath"),
    }
}

fn scale(version: &Value) -> Option<ScalePaths> {
    let scale = version["subresources"].get("scale")?;
    let text = |field: &str| scale[field].as_str().map(str::to_owned);
    Some(ScalePaths {
        spec_replicas: text("specReplicasPath")?,
        status_replicas: text("statusReplicasPath")?,
        label_selector: text("labelSelectorPath"),
    })
}

/// Returns the deprecation warning of a version. Without its own text it names the best version that is not deprecated.
fn deprecation(definition: &Value, info: &ResourceInfo, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(own) = version["deprecationWarning"].as_str() {
        return Some(own.to_owned());
    }
    let ResourceInfo { group, kind, .. } = info;
    let text = format!("{} {kind} is deprecated", info.api_version());
    let versions = pointer::items(definition, "/spec/versions").iter();
    let lasting = versions.filter(|other| other["served"] == true && other["deprecated"] != true);
    let lasting = lasting.filter_map(|other| other["name"].as_str());
    // A better version is less in the order of preference.
    let better = lasting.filter(|other| compare_versions(other, &info.version).is_lt());
    let best = better.min_by(|one, other| compare_versions(one, other));
    Some(best.map_or_else(|| text.clone(), |best| format!("{text}; use {group}/{best} {kind}")))
}
