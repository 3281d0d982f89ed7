//! Writes the `/metrics` document.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use admit_apimachinery::go;

use super::Server;
use crate::resources::ResourceInfo;

impl Server {
    /// Returns the `/metrics` document: counts under the names of kube-apiserver, and those of this server's own limits.
    pub(crate) fn metrics(&self) -> String {
        let inner = &self.inner;
        let (open, allowed) = (inner.connections.taken(), inner.connections.most());
        let changes = inner.turns.under_way();
        let (watches, unsent, ended) = inner.watchers.figures();
        let store = &inner.registry.store;
        let mut text = inner.measures.text();
        self.write_objects(&mut text);
        for (name, kind, value) in [
            ("apiserver_connections_open", "gauge", open as u64),
            ("apiserver_connections_allowed", "gauge", allowed as u64),
            ("apiserver_changes_under_way", "gauge", changes as u64),
            ("apiserver_watches_open", "gauge", watches as u64),
            ("apiserver_watch_bytes_unsent", "gauge", unsent as u64),
            ("apiserver_watches_too_slow_total", "counter", ended),
            ("apiserver_answer_bytes_held", "gauge", inner.answers.held() as u64),
            ("apiserver_storage_revision", "counter", store.revision()),
            ("apiserver_storage_list_evaluated_objects_total", "counter", store.looked_at()),
        ] {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
        }
        let others = inner.others.get().map(|others| others.0()).unwrap_or_default();
        text + &inner.registry.admission.metrics().text() + &inner.registry.converted.text() + &others
    }

    /// Writes the number and the bytes of the stored objects of each resource.
    fn write_objects(&self, text: &mut String) {
        let served = self.inner.registry.served();
        let mut seen = BTreeSet::new();
        let stored = |row: &&Arc<ResourceInfo>| {
            !row.storage_key.is_empty() && seen.insert((row.group.clone(), row.plural.clone()))
        };
        let sizes: Vec<_> = served
            .table
            .rows()
            .iter()
            .filter(stored)
            .map(|row| (row, self.inner.registry.store.size(&row.storage_key)))
            .collect();
        let mut metric = |name: &str, help: &str, of: &dyn Fn(&ResourceInfo, (usize, usize)) -> String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            for (row, size) in &sizes {
                let _ = writeln!(text, "{name}{}", of(row, *size));
            }
        };
        let labels = |row: &ResourceInfo| {
            format!("group={},resource={}", go::quote(&row.group), go::quote(&row.plural))
        };
        metric("apiserver_resource_objects", "Stored objects by resource.", &|row, (number, _)| {
            format!("{{{}}} {number}", labels(row))
        });
        metric(
            "apiserver_resource_size_estimate_bytes",
            "Bytes of the JSON of stored objects by resource.",
            &|row, (_, bytes)| format!("{{{}}} {bytes}", labels(row)),
        );
        metric(
            "apiserver_storage_objects",
            "Deprecated: apiserver_resource_objects has the same.",
            &|row, (number, _)| format!("{{resource={}}} {number}", go::quote(&row.group_resource())),
        );
    }
}
