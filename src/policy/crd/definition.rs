//! Parses a CustomResourceDefinition into typed data. Parsing checks JSON types only; values are checked at registration.

use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use indexmap::IndexSet;
use serde_json::{Map, Value};

use crate::read::path::Path;
use crate::read::webhook_client::Service;
use crate::schema::{self, Schema};

/// The annotation by which the Kubernetes project approves an API in its own groups.
pub(super) const API_APPROVED: &str = "api-approved.kubernetes.io";

/// Whether custom resources live in a namespace.
///
/// [`Definition`] has an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
    /// Any other string; registration rejects it.
    Other(String),
}

impl Scope {
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Cluster => "Cluster",
            Self::Namespaced => "Namespaced",
            Self::Other(text) => text,
        }
    }
}

/// `spec.names`, absent ones filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
}

/// An item of `additionalPrinterColumns`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrinterColumn {
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date` once registered.
    pub column_type: String,
    pub format: String,
    pub description: String,
    pub priority: i32,
    /// The path, with its leading dot: `.status.state`.
    pub json_path: String,
}

/// `subresources.scale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

/// `spec.conversion`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// `None` or `Webhook` once registered.
    pub strategy: String,
    pub webhook: Option<ConversionWebhook>,
}

/// `spec.conversion.webhook`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversionWebhook {
    pub client: Option<WebhookClient>,
    pub review_versions: Vec<String>,
}

/// `spec.conversion.webhook.clientConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookClient {
    pub url: Option<String>,
    pub service: Option<Service>,
    /// `caBundle` in base64, where it is not empty.
    pub ca_bundle: Option<String>,
}

/// An item of `spec.versions`.
#[derive(Clone, Debug)]
pub struct Version {
    pub name: String,
    pub served: bool,
    pub storage: bool,
    pub deprecated: bool,
    pub deprecation_warning: Option<String>,
    /// The schema; None where the version has none, in which case the CRD is rejected.
    pub schema: Option<Arc<Schema>>,
    pub status_subresource: bool,
    pub scale: Option<ScalePaths>,
    pub columns: Vec<PrinterColumn>,
    /// JSON paths with their leading dot.
    pub selectable_fields: Vec<String>,
}

/// A CustomResourceDefinition.
///
/// ```
/// use admit_policy::crd::{Approval, Definition, Scope};
/// use serde_json::json;
///
/// let definition = Definition::read(&json!({
///     "metadata": {
///         "name": "cats.pets.k8s.io",
///         "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
///     },
///     "spec": {
///         "group": "pets.k8s.io",
///         "names": {"plural": "cats", "kind": "Cat"},
///         "scope": "Namespaced",
///         "versions": [{"name": "v1", "served": true, "storage": true}],
///     },
/// }))
/// .unwrap();
/// assert_eq!(definition.group_resource(), "cats.pets.k8s.io");
/// assert_eq!((&definition.scope, definition.scope.as_str()), (&Scope::Namespaced, "Namespaced"));
/// assert!(definition.version("v1").is_some_and(|version| version.storage));
/// assert!(definition.warnings().is_empty() && definition.has_sound_certificates());
/// assert!(matches!(definition.approval(), Some(Approval::Bypassed)));
/// assert!(definition.approval_text().contains("unapproved"));
/// ```
#[derive(Clone, Debug)]
pub struct Definition {
    /// `metadata.name`.
    pub name: String,
    pub group: String,
    pub names: Names,
    pub scope: Scope,
    pub preserve_unknown_fields: bool,
    pub conversion: Option<Conversion>,
    /// The annotation `api-approved.kubernetes.io`, which groups of the project itself need.
    pub api_approved: Option<String>,
    pub versions: Vec<Version>,
    /// `status.storedVersions`: versions that objects in the store may be in.
    pub stored_versions: Vec<String>,
    /// The condition `Established` is true: objects may exist.
    pub established: bool,
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    /// Every keyword with a value of the wrong JSON type.
    pub fn read(manifest: &Value) -> Result<Self, Vec<FieldError>> {
        let mut reader = Reader { errors: FieldErrors::default() };
        let empty = Map::new();
        let root = At { map: manifest.as_object().unwrap_or(&empty), path: &Path::Nil };
        let metadata = Path::Root("metadata");
        let spec_path = Path::Root("spec");
        let name = At { map: child(root.map, "metadata").unwrap_or(&empty), path: &metadata };
        let spec = At { map: reader.object(root, "spec").unwrap_or(&empty), path: &spec_path };
        let status_path = Path::Root("status");
        let status = At { map: child(root.map, "status").unwrap_or(&empty), path: &status_path };
        let definition = Self {
            name: reader.text(name, "name"),
            group: reader.text(spec, "group"),
            names: reader.names(spec),
            scope: match reader.text(spec, "scope").as_str() {
                "Cluster" => Scope::Cluster,
                "Namespaced" => Scope::Namespaced,
                other => Scope::Other(other.to_owned()),
            },
            preserve_unknown_fields: reader.flag(spec, "preserveUnknownFields"),
            conversion: reader.conversion(spec),
            api_approved: reader
                .object(name, "annotations")
                .and_then(|annotations| annotations.get(API_APPROVED)?.as_str())
                .map(ToOwned::to_owned),
            versions: reader.versions(spec),
            stored_versions: reader.texts(status, "storedVersions"),
            established: manifest.pointer("/status/conditions").and_then(Value::as_array).is_some_and(
                |conditions| {
                    conditions.iter().any(|condition| {
                        condition.get("type").is_some_and(|kind| kind == "Established")
                            && condition.get("status").is_some_and(|status| status == "True")
                    })
                },
            ),
        };
        if reader.errors.is_empty() { Ok(definition) } else { Err(reader.errors.into_vec()) }
    }

    /// `datagathers.insights.openshift.io`.
    #[must_use]
    pub fn group_resource(&self) -> String {
        format!("{}.{}", self.names.plural, self.group)
    }

    /// The API server's warnings when it accepts the CRD: formats that it does not check.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = IndexSet::new();
        for schema in self.versions.iter().filter_map(|version| version.schema.as_deref()) {
            unchecked_formats(schema, &mut warnings);
        }
        warnings.into_iter().collect()
    }

    #[must_use]
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }
}

fn unchecked_formats(schema: &Schema, warnings: &mut IndexSet<String>) {
    if let Some(format) = schema.unchecked_format() {
        warnings.insert(format!("unrecognized format {}", go::quote(format)));
    }
    schema.children().for_each(|child| unchecked_formats(child, warnings));
}

fn child<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v Map<String, Value>> {
    map.get(key).and_then(Value::as_object)
}

struct Reader {
    errors: FieldErrors,
}

/// An object of the manifest, with its path.
#[derive(Clone, Copy)]
struct At<'v, 'p> {
    map: &'v Map<String, Value>,
    path: &'p Path<'p>,
}

impl Reader {
    fn names(&mut self, spec: At<'_, '_>) -> Names {
        let Some(map) = self.object(spec, "names") else { return Names::default() };
        let at = At { map, path: &spec.path.child("names") };
        let kind = self.text(at, "kind");
        let filled = |text: String, default: String| {
            if text.is_empty() && !kind.is_empty() { default } else { text }
        };
        Names {
            plural: self.text(at, "plural"),
            singular: filled(self.text(at, "singular"), kind.to_lowercase()),
            list_kind: filled(self.text(at, "listKind"), format!("{kind}List")),
            short_names: self.texts(at, "shortNames"),
            categories: self.texts(at, "categories"),
            kind,
        }
    }

    fn conversion(&mut self, spec: At<'_, '_>) -> Option<Conversion> {
        let map = self.object(spec, "conversion")?;
        let at = At { map, path: &spec.path.child("conversion") };
        let webhook = self.object(at, "webhook").map(|map| {
            let at = At { map, path: &at.path.child("webhook") };
            ConversionWebhook {
                client: self.client(at),
                review_versions: self.texts(at, "conversionReviewVersions"),
            }
        });
        Some(Conversion { strategy: self.text(at, "strategy"), webhook })
    }

    fn client(&mut self, at: At<'_, '_>) -> Option<WebhookClient> {
        let map = self.object(at, "clientConfig")?;
        let at = At { map, path: &at.path.child("clientConfig") };
        let service = self.object(at, "service").map(|map| {
            let at = At { map, path: &at.path.child("service") };
            Service {
                name: self.text(at, "name"),
                namespace: self.text(at, "namespace"),
                path: self.text(at, "path"),
                port: at.map.get("port").and_then(Value::as_i64).unwrap_or(443),
            }
        });
        let ca_bundle = self.optional_text(at, "caBundle").filter(|bundle| !bundle.is_empty());
        if let Some(bundle) = &ca_bundle
            && let Err(problem) = go::json::bytes(bundle)
        {
            let at = at.path.child("caBundle");
            self.errors.push(FieldError::invalid(at, bundle.as_str(), problem.to_string()));
        }
        Some(WebhookClient { url: self.optional_text(at, "url"), service, ca_bundle })
    }

    fn versions(&mut self, spec: At<'_, '_>) -> Vec<Version> {
        let path = spec.path.child("versions");
        let items = self.array(spec, "versions");
        let version = |(i, value): (usize, &Value)| {
            let path = path.index(i);
            match value {
                Value::Object(map) => Some(self.version(At { map, path: &path })),
                _ => self.wrong(&path, value, "an object"),
            }
        };
        items.iter().enumerate().filter_map(version).collect()
    }

    fn version(&mut self, at: At<'_, '_>) -> Version {
        let subresources = self.object(at, "subresources");
        let columns_path = at.path.child("additionalPrinterColumns");
        let selectable_path = at.path.child("selectableFields");
        let mut columns = Vec::new();
        for (i, map) in self.objects(at, "additionalPrinterColumns") {
            columns.push(self.column(At { map, path: &columns_path.index(i) }));
        }
        let mut selectable_fields = Vec::new();
        for (i, map) in self.objects(at, "selectableFields") {
            selectable_fields.push(self.text(At { map, path: &selectable_path.index(i) }, "jsonPath"));
        }
        Version {
            name: self.text(at, "name"),
            served: self.flag(at, "served"),
            storage: self.flag(at, "storage"),
            deprecated: self.flag(at, "deprecated"),
            deprecation_warning: self.optional_text(at, "deprecationWarning"),
            schema: self.schema(at),
            status_subresource: subresources
                .is_some_and(|map| map.get("status").is_some_and(Value::is_object)),
            scale: subresources.and_then(|map| self.scale(At { map, path: &at.path.child("subresources") })),
            columns,
            selectable_fields,
        }
    }

    fn schema(&mut self, at: At<'_, '_>) -> Option<Arc<Schema>> {
        let map = self.object(at, "schema")?;
        let value = map.get("openAPIV3Schema").filter(|value| !value.is_null())?;
        match schema::parse(value, &at.path.child("schema").child("openAPIV3Schema")) {
            Ok(schema) => Some(Arc::new(schema)),
            Err(errors) => {
                self.errors.extend(errors);
                None
            }
        }
    }

    fn scale(&mut self, at: At<'_, '_>) -> Option<ScalePaths> {
        let map = self.object(at, "scale")?;
        let at = At { map, path: &at.path.child("scale") };
        Some(ScalePaths {
            spec_replicas: self.text(at, "specReplicasPath"),
            status_replicas: self.text(at, "statusReplicasPath"),
            label_selector: self.optional_text(at, "labelSelectorPath"),
        })
    }

    fn column(&mut self, at: At<'_, '_>) -> PrinterColumn {
        let priority = at.map.get("priority").and_then(Value::as_i64).unwrap_or(0);
        PrinterColumn {
            name: self.text(at, "name"),
            column_type: self.text(at, "type"),
            format: self.text(at, "format"),
            description: self.text(at, "description"),
            priority: i32::try_from(priority).unwrap_or(0),
            json_path: self.text(at, "jsonPath"),
        }
    }

    fn text(&mut self, at: At<'_, '_>, key: &str) -> String {
        self.optional_text(at, key).unwrap_or_default()
    }

    fn optional_text(&mut self, at: At<'_, '_>, key: &str) -> Option<String> {
        match at.map.get(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            value => self.wrong(&at.path.child(key), value, "a string"),
        }
    }

    fn texts(&mut self, at: At<'_, '_>, key: &str) -> Vec<String> {
        let path = at.path.child(key);
        let items = self.array(at, key);
        let text = |(i, value): (usize, &Value)| match value {
            Value::String(text) => Some(text.clone()),
            _ => self.wrong(&path.index(i), value, "a string"),
        };
        items.iter().enumerate().filter_map(text).collect()
    }

    fn flag(&mut self, at: At<'_, '_>, key: &str) -> bool {
        match at.map.get(key) {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::Null) | None => false,
            Some(value) => self.wrong(&at.path.child(key), value, "a boolean").unwrap_or(false),
        }
    }

    fn array<'v>(&mut self, at: At<'v, '_>, key: &str) -> &'v [Value] {
        match at.map.get(key) {
            Some(Value::Array(items)) => items,
            Some(Value::Null) | None => &[],
            Some(value) => self.wrong(&at.path.child(key), value, "an array").unwrap_or(&[]),
        }
    }

    fn object<'v>(&mut self, at: At<'v, '_>, key: &str) -> Option<&'v Map<String, Value>> {
        match at.map.get(key)? {
            Value::Object(map) => Some(map),
            Value::Null => None,
            value => self.wrong(&at.path.child(key), value, "an object"),
        }
    }

    fn objects<'v>(&mut self, at: At<'v, '_>, key: &str) -> Vec<(usize, &'v Map<String, Value>)> {
        let path = at.path.child(key);
        let items = self.array(at, key);
        let object = |(i, value): (usize, &'v Value)| match value {
            Value::Object(map) => Some((i, map)),
            _ => self.wrong(&path.index(i), value, "an object"),
        };
        items.iter().enumerate().filter_map(object).collect()
    }

    /// Records a value of the wrong kind and yields nothing in its place.
    fn wrong<T>(&mut self, path: &Path<'_>, value: &Value, expected: &str) -> Option<T> {
        self.errors.push(FieldError::invalid(path, value, format!("must be {expected}")));
        None
    }
}
