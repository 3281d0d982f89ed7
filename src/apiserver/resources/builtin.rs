//! The built-in kinds, as Kubernetes 1.36 serves them: names, scope, verbs, subresources. Columns and schemas are
//! those of the table renderer and of the OpenAPI documents.

use std::sync::Arc;

use super::{ResourceInfo, Scope, Subresource};
use Scope::{Cluster, Namespaced};
use Subresource::{Attach, Exec, Finalize, Log, PortForward, Scale, Status, Token};

/// The rows of all built-in kinds, grouped by API group.
#[must_use]
pub fn builtin_rows() -> Vec<Arc<ResourceInfo>> {
    ROWS.iter().map(|row| Arc::new(row.info())).collect()
}

struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    scope: Scope,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    subresources: &'static [Subresource],
    verbs: &'static [&'static str],
    storage_key: &'static str,
    selectable_fields: &'static [&'static str],
}

const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// A namespace is deleted one at a time: its content goes with it.
const NO_COLLECTION: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];

const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const REGARDING_FIELDS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];
const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];

const fn core(kind: &'static str, plural: &'static str, scope: Scope) -> Row {
    stored("", "v1", kind, plural, scope)
}

const fn stored(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    scope: Scope,
) -> Row {
    Row {
        group,
        version,
        kind,
        plural,
        scope,
        short_names: &[],
        categories: &[],
        subresources: &[],
        verbs: ALL,
        storage_key: plural,
        selectable_fields: &[],
    }
}

const fn review(group: &'static str, kind: &'static str, plural: &'static str, scope: Scope) -> Row {
    Row { verbs: CREATE, storage_key: "", ..stored(group, "v1", kind, plural, scope) }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const EXTENSION: &[&str] = &["api-extensions"];
const EVERYTHING: &[&str] = &["all"];

const ROWS: &[Row] = &[
    Row { short_names: &["cm"], ..core("ConfigMap", "configmaps", Namespaced) },
    Row { short_names: &["ev"], selectable_fields: EVENT_FIELDS, ..core("Event", "events", Namespaced) },
    Row {
        short_names: &["ns"],
        verbs: NO_COLLECTION,
        subresources: &[Finalize, Status],
        selectable_fields: &["status.phase", "name"],
        ..core("Namespace", "namespaces", Cluster)
    },
    Row {
        short_names: &["no"],
        subresources: &[Status],
        selectable_fields: &["spec.unschedulable"],
        storage_key: "minions",
        ..core("Node", "nodes", Cluster)
    },
    Row {
        short_names: &["po"],
        categories: EVERYTHING,
        subresources: &[Attach, Exec, Log, PortForward, Status],
        selectable_fields: POD_FIELDS,
        ..core("Pod", "pods", Namespaced)
    },
    Row {
        short_names: &["quota"],
        subresources: &[Status],
        ..core("ResourceQuota", "resourcequotas", Namespaced)
    },
    Row { short_names: &["limits"], ..core("LimitRange", "limitranges", Namespaced) },
    Row { selectable_fields: &["type"], ..core("Secret", "secrets", Namespaced) },
    Row {
        short_names: &["sa"],
        subresources: &[Token],
        ..core("ServiceAccount", "serviceaccounts", Namespaced)
    },
    Row {
        short_names: &["svc"],
        categories: EVERYTHING,
        subresources: &[Status],
        storage_key: "services/specs",
        selectable_fields: &["spec.clusterIP", "spec.type"],
        ..core("Service", "services", Namespaced)
    },
    Row {
        short_names: &["deploy"],
        categories: EVERYTHING,
        subresources: &[Scale, Status],
        ..stored("apps", "v1", "Deployment", "deployments", Namespaced)
    },
    Row {
        short_names: &["rs"],
        categories: EVERYTHING,
        subresources: &[Scale, Status],
        selectable_fields: &["status.replicas"],
        ..stored("apps", "v1", "ReplicaSet", "replicasets", Namespaced)
    },
    Row {
        short_names: &["sts"],
        categories: EVERYTHING,
        subresources: &[Scale, Status],
        ..stored("apps", "v1", "StatefulSet", "statefulsets", Namespaced)
    },
    Row {
        short_names: &["ds"],
        categories: EVERYTHING,
        subresources: &[Status],
        ..stored("apps", "v1", "DaemonSet", "daemonsets", Namespaced)
    },
    Row {
        short_names: &["cj"],
        categories: EVERYTHING,
        subresources: &[Status],
        ..stored("batch", "v1", "CronJob", "cronjobs", Namespaced)
    },
    Row {
        short_names: &["pvc"],
        subresources: &[Status],
        ..core("PersistentVolumeClaim", "persistentvolumeclaims", Namespaced)
    },
    Row {
        short_names: &["ev"],
        selectable_fields: REGARDING_FIELDS,
        ..stored("events.k8s.io", "v1", "Event", "events", Namespaced)
    },
    review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", Cluster),
    review("authentication.k8s.io", "TokenReview", "tokenreviews", Cluster),
    review("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", Namespaced),
    review("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", Cluster),
    review("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", Cluster),
    review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", Cluster),
    Row {
        categories: EVERYTHING,
        subresources: &[Status],
        selectable_fields: &["status.successful"],
        ..stored("batch", "v1", "Job", "jobs", Namespaced)
    },
    Row {
        short_names: &["csr"],
        subresources: &[Status],
        selectable_fields: &["spec.signerName"],
        ..stored(
            "certificates.k8s.io",
            "v1",
            "CertificateSigningRequest",
            "certificatesigningrequests",
            Cluster,
        )
    },
    Row {
        short_names: &["netpol"],
        ..stored("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", Namespaced)
    },
    Row {
        short_names: &["pdb"],
        subresources: &[Status],
        ..stored("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", Namespaced)
    },
    stored("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", Cluster),
    stored("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", Cluster),
    stored("rbac.authorization.k8s.io", "v1", "Role", "roles", Namespaced),
    stored("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", Namespaced),
    Row { short_names: &["sc"], ..stored("storage.k8s.io", "v1", "StorageClass", "storageclasses", Cluster) },
    Row {
        categories: EXTENSION,
        ..stored(ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", Cluster)
    },
    Row {
        categories: EXTENSION,
        subresources: &[Status],
        ..stored(ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", Cluster)
    },
    Row {
        categories: EXTENSION,
        ..stored(
            ADMISSION,
            "v1",
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
            Cluster,
        )
    },
    Row {
        categories: EXTENSION,
        ..stored(
            ADMISSION,
            "v1",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            Cluster,
        )
    },
    Row {
        short_names: &["crd", "crds"],
        categories: EXTENSION,
        subresources: &[Status],
        storage_key: "apiextensions.k8s.io/customresourcedefinitions",
        ..stored(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            Cluster,
        )
    },
    stored("coordination.k8s.io", "v1", "Lease", "leases", Namespaced),
];

impl Row {
    fn info(&self) -> ResourceInfo {
        ResourceInfo {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            storage_version: self.version.to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            plural: self.plural.to_owned(),
            singular: self.kind.to_ascii_lowercase(),
            short_names: owned(self.short_names),
            categories: owned(self.categories),
            scope: self.scope,
            verbs: owned(self.verbs),
            subresources: self.subresources.to_vec(),
            columns: Vec::new(),
            schema: None,
            storage_key: self.storage_key.to_owned(),
            selectable_fields: owned(self.selectable_fields),
            builtin: true,
        }
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
