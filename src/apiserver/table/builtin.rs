//! Defines columns and cells of the built-in kinds. `columns.txt` has the columns of kinds whose cells are computed by code here
//! and in sibling modules; `values.txt` has those of kinds whose cells are mostly values at a path.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::texts::{age, count, elapsed, items, name, or, plain, text};
use super::values::Cell;
use super::{computed, controllers, duration, workloads};
use crate::resources::SCALE;

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: i32,
    description: String,
}

impl Column {
    /// Whether the Table lists the column; some cells have none.
    pub(super) fn is_told(&self) -> bool {
        self.name != "-"
    }

    pub(super) fn definition(&self) -> Value {
        definition(self.name, self.kind, self.format, &self.description, self.priority)
    }
}

type Computed = fn(&Value, Timestamp) -> Vec<Value>;

enum Cells {
    Computed(Computed),
    /// One for each column.
    Values(Vec<Cell>),
}

pub(super) struct Kind {
    pub(super) columns: Vec<Column>,
    cells: Cells,
}

impl Kind {
    /// Whether the kind has the same columns as kinds without any of their own.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.columns.as_slice(), [_, made] if made.name == "Created At")
    }

    pub(super) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.cells {
            Cells::Computed(cells) => cells(object, now),
            Cells::Values(cells) => {
                let columns = self.columns.iter().zip(cells);
                columns.map(|(column, cell)| cell.value(column.kind, object, now)).collect()
            }
        }
    }
}

static KINDS: LazyLock<HashMap<&'static str, Kind>> = LazyLock::new(read_columns);

/// Returns the columns of a built-in kind; None if it has only the default columns.
pub(super) fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    if group.is_empty() { KINDS.get(kind) } else { KINDS.get(format!("{kind}.{group}").as_str()) }
}

/// Returns the columns of the scales of built-in or of custom kinds.
pub(super) fn scale(of_builtin: bool) -> Option<&'static Kind> {
    kind(if of_builtin { SCALE.0 } else { "of-custom-kinds" }, SCALE.2)
}

pub(super) fn name_column() -> Value {
    definition("Name", "string", "name", NAME, 0)
}

pub(super) fn age_column() -> Value {
    definition("Age", "date", "", AGE, 0)
}

pub(super) fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i32) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

fn read_columns() -> HashMap<&'static str, Kind> {
    let mut kinds = HashMap::new();
    for (name, lines) in sections(include_str!("columns.txt")) {
        let Some(cells) = cells_of(name) else { continue };
        let columns = lines.iter().filter_map(|line| column(line)).collect();
        kinds.insert(name, Kind { columns, cells: Cells::Computed(cells) });
    }
    for (name, lines) in sections(include_str!("values.txt")) {
        let (columns, cells) = lines.iter().filter_map(|line| valued_column(line)).unzip();
        kinds.insert(name, Kind { columns, cells: Cells::Values(cells) });
    }
    kinds
}

/// Returns each kind for which the text has columns, with their lines.
fn sections(text: &'static str) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    text.split("\n\n").flat_map(|section| {
        let mut lines = section.lines().filter(|line| !line.starts_with('#'));
        let heading = lines.next().unwrap_or_default();
        let columns: Vec<&str> = lines.collect();
        heading.split_whitespace().map(move |name| (name, columns.clone())).collect::<Vec<_>>()
    })
}

fn column(line: &'static str) -> Option<Column> {
    let mut parts = line.trim().splitn(5, " | ");
    let (name, kind, format, priority) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let format = if format == "-" { "" } else { format };
    Some(Column {
        name,
        kind,
        format,
        priority: priority.parse().ok()?,
        description: described(parts.next()?),
    })
}

fn valued_column(line: &'static str) -> Option<(Column, Cell)> {
    let mut parts = line.trim().splitn(5, " | ");
    let (name, kind, priority, cell) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let (kind, format) = match kind.split_once(':') {
        Some(both) => both,
        None => (kind, if cell == "@name" { "name" } else { "" }),
    };
    let description = described(parts.next()?);
    Some((Column { name, kind, format, priority: priority.parse().ok()?, description }, Cell::read(cell)?))
}

fn described(text: &str) -> String {
    match text {
        "@name" => NAME.to_owned(),
        "@age" => AGE.to_owned(),
        "-" => String::new(),
        text => text.replace("\\n", "\n"),
    }
}

fn cells_of(kind: &str) -> Option<Computed> {
    Some(match kind {
        "ConfigMap" => |object, now| {
            let entries = count(object, "/data") + count(object, "/binaryData");
            vec![name(object), entries.into(), age(object, now).into()]
        },
        "Secret" => |object, now| {
            vec![
                name(object),
                text(object, "/type").into(),
                count(object, "/data").into(),
                age(object, now).into(),
            ]
        },
        "Namespace" => {
            |object, now| vec![name(object), text(object, "/status/phase").into(), age(object, now).into()]
        }
        "ServiceAccount" => |object, now| vec![name(object), age(object, now).into()],
        "Lease.coordination.k8s.io" => |object, now| {
            vec![name(object), text(object, "/spec/holderIdentity").into(), age(object, now).into()]
        },
        "Scale.autoscaling" | "Scale.of-custom-kinds" => |object, now| {
            let replicas = |path| object.pointer(path).cloned().unwrap_or_else(|| 0.into());
            vec![
                name(object),
                replicas("/spec/replicas"),
                replicas("/status/replicas"),
                age(object, now).into(),
            ]
        },
        "CustomResourceDefinition.apiextensions.k8s.io"
        | "ClusterRole.rbac.authorization.k8s.io"
        | "Role.rbac.authorization.k8s.io" => {
            |object, _| vec![name(object), text(object, "/metadata/creationTimestamp").into()]
        }
        "ClusterRoleBinding.rbac.authorization.k8s.io" | "RoleBinding.rbac.authorization.k8s.io" => {
            role_binding
        }
        "ValidatingAdmissionPolicy.admissionregistration.k8s.io" => policy,
        "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io" => policy_binding,
        "ValidatingWebhookConfiguration.admissionregistration.k8s.io"
        | "MutatingWebhookConfiguration.admissionregistration.k8s.io" => {
            |object, now| vec![name(object), count(object, "/webhooks").into(), age(object, now).into()]
        }
        "StorageClass.storage.k8s.io" => storage_class,
        "PodDisruptionBudget.policy" => disruption_budget,
        "CertificateSigningRequest.certificates.k8s.io" => signing_request,
        "Event" | "Event.events.k8s.io" => event,
        "Service" => workloads::service,
        "Pod" => workloads::pod,
        "Job.batch" => workloads::job,
        "Deployment.apps" => controllers::deployment,
        "ReplicaSet.apps" => controllers::replica_set,
        "StatefulSet.apps" => controllers::stateful_set,
        "DaemonSet.apps" => controllers::daemon_set,
        "CronJob.batch" => controllers::cron_job,
        "PersistentVolumeClaim" => controllers::claim,
        "Node" => workloads::node,
        _ => return None,
    })
}

fn storage_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let expansion = object.get("allowVolumeExpansion").is_some_and(|allowed| allowed == true);
    vec![
        name(object),
        text(object, "/provisioner").into(),
        or(text(object, "/reclaimPolicy"), "Delete").into(),
        or(text(object, "/volumeBindingMode"), "<unset>").into(),
        expansion.into(),
        age(object, now).into(),
    ]
}

fn disruption_budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = |path| object.pointer(path).map_or_else(|| "N/A".to_owned(), plain);
    let allowed = object.pointer("/status/disruptionsAllowed").cloned().unwrap_or_else(|| 0.into());
    let (minimum, maximum) = (bound("/spec/minAvailable"), bound("/spec/maxUnavailable"));
    vec![name(object), minimum.into(), maximum.into(), allowed, age(object, now).into()]
}

fn role_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let subjects = |kind: &str| {
        let named: Vec<String> = items(object, "/subjects")
            .iter()
            .filter(|subject| text(subject, "/kind") == kind)
            .map(|subject| match text(subject, "/namespace") {
                "" => text(subject, "/name").to_owned(),
                namespace => format!("{namespace}/{}", text(subject, "/name")),
            })
            .collect();
        named.join(", ")
    };
    let role = format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
    vec![
        name(object),
        role.into(),
        age(object, now).into(),
        subjects("User").into(),
        subjects("Group").into(),
        subjects("ServiceAccount").into(),
    ]
}

fn policy(object: &Value, now: Timestamp) -> Vec<Value> {
    let kind = computed::param_kind(object).into();
    vec![name(object), count(object, "/spec/validations").into(), kind, age(object, now).into()]
}

fn policy_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let reference = computed::param_ref(object).into();
    vec![name(object), text(object, "/spec/policyName").into(), reference, age(object, now).into()]
}

fn signing_request(object: &Value, now: Timestamp) -> Vec<Value> {
    let seconds = object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    let has = |wanted: &str| items(object, "/status/conditions").iter().any(|c| text(c, "/type") == wanted);
    let mut condition = if has("Denied") {
        "Denied".to_owned()
    } else if has("Approved") {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if has("Failed") {
        condition.push_str(",Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        condition.push_str(",Issued");
    }
    vec![
        name(object),
        age(object, now).into(),
        or(text(object, "/spec/signerName"), "<none>").into(),
        text(object, "/spec/username").into(),
        seconds.map_or_else(|| "<none>".to_owned(), duration::human).into(),
        condition.into(),
    ]
}

/// Formats an event of either version: `core/v1` and `events.k8s.io/v1` have different names for the same members.
fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let first_of = |paths: &[&str]| paths.iter().map(|path| text(object, path)).find(|text| !text.is_empty());
    let first_seen = first_of(&["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let last_seen =
        first_of(&["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp"]).or(first_seen);
    let since = |time: Option<&str>| time.map_or_else(|| "<unknown>".to_owned(), |time| elapsed(time, now));
    let regarding = object.get("involvedObject").or_else(|| object.get("regarding")).unwrap_or(&Value::Null);
    let target = match text(regarding, "/name") {
        "" => text(regarding, "/kind").to_lowercase(),
        name => format!("{}/{name}", text(regarding, "/kind").to_lowercase()),
    };
    let component = first_of(&[
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ])
    .unwrap_or_default();
    let host =
        first_of(&["/source/host", "/deprecatedSource/host", "/reportingInstance"]).unwrap_or_default();
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    let count = ["/series/count", "/count", "/deprecatedCount"]
        .iter()
        .find_map(|path| object.pointer(path).filter(|count| **count != 0))
        .cloned()
        .unwrap_or_else(|| 1.into());
    vec![
        since(last_seen).into(),
        text(object, "/type").into(),
        text(object, "/reason").into(),
        target.into(),
        text(regarding, "/fieldPath").into(),
        source.into(),
        first_of(&["/message", "/note"]).unwrap_or_default().trim().into(),
        since(first_seen).into(),
        count,
        name(object),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_with_columns_has_as_many_cells() {
        let texts = [include_str!("columns.txt"), include_str!("values.txt")];
        for (name, lines) in texts.into_iter().flat_map(sections) {
            let kind = KINDS.get(name).unwrap_or_else(|| panic!("{name} has columns but no cells"));
            let cells = kind.cells(&json!({}), Timestamp::UNIX_EPOCH).len();
            assert_eq!((cells, kind.columns.len()), (lines.len(), lines.len()), "{name}");
        }
    }
}
