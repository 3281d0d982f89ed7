//! The kind whose objects are asked about: one that a definition declares, or one that a server has built in.

use std::sync::LazyLock;

use admit_policy::crd::{CompiledCrd, Definition, Scope, ValidateOptions, Write};
use admit_policy::schema::{AdditionalProperties, Malformed, Pattern, Schema};
use admit_policy::{
    Builtins, EvalOptions, GroupVersionKind, GroupVersionResource, Object, Operation, Pace, Path, Prepared,
    Request, UserInfo,
};
use serde_json::Value;

use super::builtin::{self, Sureness};
use super::mended::mended;
use super::stable::{self, Stable};
use super::whole::{NAME, whole};

/// Why documents cannot be asked about.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct SideError {
    /// Of the document, the first that is wrong; empty where it is none.
    pub field: String,
    /// Each field with what is wrong with it, in the words of Kubernetes.
    pub message: String,
}

impl SideError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { field: String::new(), message: message.into() }
    }

    /// Of mistakes in fields: each field, and what is wrong with it.
    pub(super) fn of_fields(errors: impl IntoIterator<Item = (String, String)>) -> Self {
        let (fields, told): (Vec<String>, Vec<String>) = errors.into_iter().unzip();
        Self { field: fields.into_iter().next().unwrap_or_default(), message: told.join("; ") }
    }
}

/// The kind whose objects are asked about.
#[derive(Debug)]
pub struct Subject {
    source: Source,
    pub(super) version: String,
    pub(super) kind: GroupVersionKind,
    pub(super) plural: String,
    is_namespaced: bool,
    /// Through which its objects are written, as objects of its kind.
    pub(super) subresources: Vec<String>,
    /// Of whole objects, as rules of a definition see them, and as policies do.
    pub(super) typed: Schema,
    pub(super) plain: Schema,
    /// Fields that no change leaves other than they were.
    pub(super) fixed: Vec<String>,
    /// Fields that mean after a change what they meant before.
    pub(super) stable: Vec<Stable>,
    /// The fields that the status of a new object may have; none where it may have any.
    pub(super) fresh_status: Option<Vec<String>>,
    /// Of objects that a server likely lets through, where more is demanded of them than their schema says.
    pub(super) likely: Option<Schema>,
}

/// What is written, and what is there already.
type Written = (Value, Option<Value>);

/// A request as policies see it.
pub(super) struct Taken {
    pub(super) object: Value,
    pub(super) old_object: Option<Value>,
    /// Through which it is written; empty for the object itself.
    pub(super) subresource: String,
}

/// What says which objects are some of the kind.
#[derive(Debug)]
enum Source {
    /// A definition without any rules: what it refuses is no object.
    Definition(Box<CompiledCrd>),
    /// A server's own judgement, and objects that it lets in.
    Builtin(&'static dyn Builtins, Vec<Value>),
}

impl Subject {
    /// The objects of a version of a definition; without a name, of the stored one.
    ///
    /// # Errors
    /// When the definition is none that a server takes, or has no such version.
    pub fn new(definition: &Value, version: Option<&str>) -> Result<Self, SideError> {
        let bare = compiled(&without_rules(definition))?;
        let found = match version {
            Some(name) => bare.definition().version(name),
            None => bare.definition().versions.iter().find(|version| version.storage),
        };
        let found = found.ok_or_else(|| SideError::new("the definition has no such version"))?;
        let (version, schema) = (found.name.clone(), found.schema.as_deref().cloned().unwrap_or_default());
        let definition = bare.definition();
        let (kind, is_namespaced) = kind_of(definition, &version);
        let plural = definition.names.plural.clone();
        let typed = whole(&schema, &kind, is_namespaced, false);
        let plain = whole(&schema, &kind, is_namespaced, true);
        let source = Source::Definition(Box::new(bare));
        let subresources = vec!["status".to_owned()];
        Ok(Self {
            source,
            version,
            kind,
            plural,
            is_namespaced,
            subresources,
            typed,
            plain,
            fixed: Vec::new(),
            stable: Vec::new(),
            fresh_status: None,
            likely: None,
        })
    }

    /// The objects of a kind that a server has built in, about which policies are asked alone; none where it is not known.
    #[must_use]
    pub fn builtin(builtins: &'static dyn Builtins, kind: &GroupVersionKind) -> Option<Self> {
        let catalogue = builtins.catalogue()?;
        let served = catalogue.kind(kind)?;
        let plain = builtin::schema(catalogue, served, Sureness::Certain);
        Some(Self {
            source: Source::Builtin(builtins, builtins.smallest(kind)),
            version: kind.version.clone(),
            kind: kind.clone(),
            plural: served.plural.clone(),
            is_namespaced: served.namespaced,
            // What scales an object is of another kind.
            subresources: served.subresources.iter().filter(|name| *name != "scale").cloned().collect(),
            // No rules of a definition are asked about it.
            typed: plain.clone(),
            plain,
            fixed: served.fixed.clone(),
            stable: stable::of_kind(&served.stable),
            fresh_status: served.fresh_status.clone(),
            likely: Some(builtin::schema(catalogue, served, Sureness::Likely)),
        })
    }

    /// The kind and its version.
    #[must_use]
    pub const fn kind(&self) -> &GroupVersionKind {
        &self.kind
    }

    /// The object as the server reads it; none where it refuses it whatever rules say.
    #[must_use]
    pub fn settled(&self, object: &Value) -> Option<Value> {
        match &self.source {
            Source::Definition(bare) => self.of_definition(bare, object),
            Source::Builtin(builtins, _) => stored(*builtins, object),
        }
    }

    /// A write as the server reads it: for rules of a definition, which are asked of whatever is written; for a policy, creations
    /// and through each of its `ways` an update. None where it is refused whatever rules say.
    pub(super) fn taken(&self, new: &Value, old: Option<&Value>, ways: Option<&[String]>) -> Vec<Taken> {
        let through = |subresource: &str, (object, old_object)| {
            let subresource = subresource.to_owned();
            Taken { object, old_object, subresource }
        };
        let Some(ways) = ways else {
            let old = old.map(|old| self.settled(old));
            let both = match (self.settled(new), old) {
                (Some(new), None) => Some((new, None)),
                (Some(new), Some(Some(old))) => Some((new, Some(old))),
                _ => None,
            };
            return both.map(|both| through("", both)).into_iter().collect();
        };
        let Some(old) = old else {
            return self.created(new).map(|new| through("", (new, None))).into_iter().collect();
        };
        let Some(old) = self.settled(old) else { return Vec::new() };
        let update = |way: &String| Some(through(way, self.updated(new, &old, way)?));
        ways.iter().filter_map(update).collect()
    }

    fn created(&self, new: &Value) -> Option<Value> {
        match &self.source {
            Source::Definition(bare) => self.written(bare, new, None, false),
            Source::Builtin(builtins, _) => object_of(builtins.prepare(new, None, false)?),
        }
    }

    fn updated(&self, new: &Value, old: &Value, way: &str) -> Option<Written> {
        match &self.source {
            Source::Definition(bare) => {
                let new = self.written(bare, new, Some(old), way == "status")?;
                Some((new, Some(old.clone())))
            }
            Source::Builtin(builtins, _) => {
                let prepared = builtins.written(new, Some(old), way)?;
                let stands = prepared.old.clone();
                Some((object_of(prepared)?, stands))
            }
        }
    }

    /// Whether one request writes the status, and another everything else.
    pub(super) fn splits_status(&self) -> bool {
        let Source::Definition(bare) = &self.source else { return false };
        bare.definition().version(&self.version).is_some_and(|version| version.status_subresource)
    }

    /// A write of which something is asked, with what else is demanded of its objects, in each way that is known.
    pub(super) fn completed(&self, new: &Value, old: Option<&Value>, ways: &[String]) -> Vec<Written> {
        let Source::Builtin(builtins, smallest) = &self.source else { return Vec::new() };
        let complete = |smallest: &Value| {
            let created = |object: &Value| builtins.prepare(object, None, false)?.refusal;
            let of = |asked: &Value| builtin::completed(smallest, asked);
            let Some(old) = old else { return vec![(mended(created, &self.plain, of(new)), None)] };
            let old = mended(created, &self.plain, of(old));
            let stands = stored(*builtins, &old);
            let updated = |object: &Value| {
                let way = ways.first().map_or("", String::as_str);
                builtins.written(object, Some(stands.as_ref()?), way)?.refusal
            };
            // What a server filled in stands there, too, and may have to stay.
            let filled = stands.as_ref().map(|stands| builtin::completed(stands, new));
            let all = std::iter::once(of(new)).chain(filled);
            all.map(|new| (mended(updated, &self.plain, new), Some(old.clone()))).collect()
        };
        smallest.iter().flat_map(complete).collect()
    }

    /// What is demanded of objects and no schema says; none where that is all.
    pub(super) fn demands_more(&self) -> Option<String> {
        match &self.source {
            Source::Definition(_) => None,
            Source::Builtin(..) => {
                Some(format!("what a server demands of a {} beyond its types", self.kind.kind))
            }
        }
    }

    /// Whether a request is shown as it is read, and not as it is written: what a definition fills in is little, what a server does
    /// would hide the rest.
    pub(super) const fn shows_defaults(&self) -> bool {
        matches!(self.source, Source::Definition(_))
    }

    /// How an object differs from all that claims are about; what a server lets through never does.
    ///
    /// ```
    /// use admit_analysis::prove::Subject;
    /// use serde_json::json;
    ///
    /// let definition = json!({
    ///     "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    ///     "metadata": {"name": "cats.example.com"},
    ///     "spec": {
    ///         "group": "example.com", "scope": "Cluster", "names": {"plural": "cats", "kind": "Cat"},
    ///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
    ///             "type": "object", "properties": {"paws": {"type": "integer"}},
    ///         }}}],
    ///     },
    /// });
    /// let cats = Subject::new(&definition, None).unwrap();
    /// let cat = json!({"apiVersion": "example.com/v1", "kind": "Cat", "metadata": {"name": "tom"}, "paws": 4});
    /// assert!(cats.strays(&cat).is_empty());
    /// let dog = json!({"apiVersion": "example.com/v1", "kind": "Dog", "metadata": {"name": "tom"}, "paws": "4"});
    /// assert_eq!(cats.strays(&dog).len(), 2);
    /// ```
    #[must_use]
    pub fn strays(&self, object: &Value) -> Vec<String> {
        let found = admit_policy::schema::validate(object, &self.plain, None, &Path::Nil, &Pace::new(None));
        found.iter().map(ToString::to_string).collect()
    }

    fn written(&self, crd: &CompiledCrd, new: &Value, old: Option<&Value>, status: bool) -> Option<Value> {
        let version = crd.version(&self.version)?;
        let found = Write { crd, version, old, status, eval: EvalOptions::default() }.decide(new);
        (found.errors.is_empty() && self.is_addressed(&found.object)).then_some(found.object)
    }

    fn of_definition(&self, bare: &CompiledCrd, object: &Value) -> Option<Value> {
        let version = bare.version(&self.version)?;
        let mut object = object.clone();
        version.read(&mut object, Malformed::Refuse, None).ok()?;
        let found = version.validate(&object, None, &ValidateOptions::default());
        (self.is_addressed(&object) && found.errors.is_empty()).then_some(object)
    }

    fn is_addressed(&self, object: &Value) -> bool {
        let named = object.pointer("/metadata/name").and_then(Value::as_str).is_some_and(is_name);
        let namespaced = object.pointer("/metadata/namespace").and_then(Value::as_str).is_some();
        named && namespaced == self.is_namespaced
    }

    /// The schema as written; none of kinds without a definition.
    fn typed_source(&self) -> Option<Schema> {
        let Source::Definition(bare) = &self.source else { return None };
        Some(bare.definition().version(&self.version)?.schema.as_deref().cloned().unwrap_or_default())
    }

    /// The schema as written, without rules.
    pub(super) fn without_rules(&self) -> Schema {
        without_schema_rules(&self.typed_source().unwrap_or_default())
    }

    /// Whether a schema is the subject's, but for rules.
    pub(super) fn has_schema(&self, schema: &Schema) -> bool {
        self.typed_source().is_some_and(|own| without_schema_rules(schema) == own)
    }

    pub(super) fn request(&self, new: &Value, old: Option<&Value>) -> Request<'static> {
        let text =
            |pointer: &str| new.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let resource = GroupVersionResource::new(
            self.kind.group.as_str(),
            self.kind.version.as_str(),
            self.plural.as_str(),
        );
        Request {
            uid: "00000000-0000-0000-0000-000000000000".to_owned(),
            request_kind: self.kind.clone(),
            request_resource: resource.clone(),
            request_subresource: String::new(),
            kind: self.kind.clone(),
            resource,
            subresource: String::new(),
            name: text("/metadata/name"),
            namespace: text("/metadata/namespace"),
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            user: UserInfo::default(),
            object: Some(Object::from(new.clone())),
            old_object: old.cloned().map(Object::from),
            options: None,
            dry_run: false,
        }
    }
}

/// An object as it lies in a server's store, if it can.
fn stored(builtins: &dyn Builtins, object: &Value) -> Option<Value> {
    let created = builtins.prepare(object, None, false)?;
    let created = object_of(created)?;
    // Whoever creates an object does not say how it stands.
    if object.get("status").is_none_or(|status| created.get("status") == Some(status)) {
        return Some(created);
    }
    let mut with_status = created.clone();
    with_status.as_object_mut()?.insert("status".to_owned(), object.get("status")?.clone());
    let written = builtins.prepare(&with_status, Some(&created), true).and_then(object_of);
    Some(written.unwrap_or(created))
}

/// What is let in.
fn object_of(prepared: Prepared) -> Option<Value> {
    (prepared.refusal.is_none() && prepared.strict.is_empty()).then_some(prepared.object)
}

/// The kind of a version, and whether its objects are in namespaces.
pub(super) fn kind_of(definition: &Definition, version: &str) -> (GroupVersionKind, bool) {
    let kind = GroupVersionKind::new(&*definition.group, version, &*definition.names.kind);
    (kind, definition.scope == Scope::Namespaced)
}

pub(super) fn is_name(name: &str) -> bool {
    /// Compiled once: every object that is tried has a name.
    static PATTERN: LazyLock<Pattern> = LazyLock::new(|| Pattern::new(NAME));
    name.len() <= 253 && PATTERN.is_match(name)
}

pub(super) fn compiled(definition: &Value) -> Result<CompiledCrd, SideError> {
    CompiledCrd::compile(definition).map_err(|errors| {
        SideError::of_fields(errors.into_iter().map(|error| (error.field.clone(), error.to_string())))
    })
}

/// A definition without rules.
pub(super) fn without_rules(definition: &Value) -> Value {
    match definition {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(key, value)| *key != "x-kubernetes-validations" || !value.is_array())
                .map(|(key, value)| (key.clone(), without_rules(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_rules).collect()),
        value => value.clone(),
    }
}

fn without_schema_rules(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    strip(&mut schema);
    schema
}

fn strip(schema: &mut Schema) {
    schema.rules.clear();
    schema.properties.values_mut().for_each(strip);
    schema.items.as_deref_mut().into_iter().for_each(strip);
    if let Some(AdditionalProperties::Schema(entry)) = &mut schema.additional_properties {
        strip(entry);
    }
}
