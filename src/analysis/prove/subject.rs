//! Describes the kind whose objects a claim is about: one that a CustomResourceDefinition declares, or a built-in one.

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

/// Why claims about a document are impossible.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct SideError {
    /// The path of the first invalid field; empty if the error is about no field.
    pub field: String,
    /// Each invalid field with its error, in the words of Kubernetes.
    pub message: String,
}

impl SideError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { field: String::new(), message: message.into() }
    }

    /// Builds the error from invalid fields and their messages.
    pub(super) fn of_fields(errors: impl IntoIterator<Item = (String, String)>) -> Self {
        let (fields, told): (Vec<String>, Vec<String>) = errors.into_iter().unzip();
        Self { field: fields.into_iter().next().unwrap_or_default(), message: told.join("; ") }
    }
}

/// The kind whose objects a claim is about.
#[derive(Debug)]
pub struct Subject {
    source: Source,
    pub(super) version: String,
    pub(super) kind: GroupVersionKind,
    pub(super) plural: String,
    is_namespaced: bool,
    /// The subresources through which its objects are written as objects of its kind.
    pub(super) subresources: Vec<String>,
    /// The schemas of whole objects: as rules of a definition see them, and as policies do.
    pub(super) typed: Schema,
    pub(super) plain: Schema,
    /// Fields that are immutable.
    pub(super) fixed: Vec<String>,
    /// Fields whose meaning no update changes, some of them conditionally.
    pub(super) stable: Vec<Stable>,
    /// The fields that the status of a new object may have; `None` for any.
    pub(super) fresh_status: Option<Vec<String>>,
    /// The schema of objects that a server likely admits, where it validates more than the schema.
    pub(super) likely: Option<Schema>,
}

/// The new and the old object of a write.
type Written = (Value, Option<Value>);

/// A request as policies see it.
pub(super) struct Taken {
    pub(super) object: Value,
    pub(super) old_object: Option<Value>,
    /// The subresource that is written; empty for the object itself.
    pub(super) subresource: String,
}

/// What decides whether an object is a valid one of the kind.
#[derive(Debug)]
enum Source {
    /// A definition without rules: what its schema rejects is no object.
    Definition(Box<CompiledCrd>),
    /// A server's validation of a built-in kind, and objects that it admits.
    Builtin(&'static dyn Builtins, Vec<Value>),
}

impl Subject {
    /// Takes the objects of a version of a definition; without a name, of the storage version.
    ///
    /// # Errors
    /// If a server rejects the definition, or it has no such version.
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

    /// Takes the objects of a built-in kind, for claims about policies only; `None` if the kind is unknown.
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
            // `scale` has another kind.
            subresources: served.subresources.iter().filter(|name| *name != "scale").cloned().collect(),
            // No definition's rules apply to it.
            typed: plain.clone(),
            plain,
            fixed: served.fixed.clone(),
            stable: stable::of_kind(&served.stable),
            fresh_status: served.fresh_status.clone(),
            likely: Some(builtin::schema(catalogue, served, Sureness::Likely)),
        })
    }

    /// Returns the kind with its version.
    #[must_use]
    pub const fn kind(&self) -> &GroupVersionKind {
        &self.kind
    }

    /// Returns the object as the server reads it; `None` if it is invalid regardless of rules.
    #[must_use]
    pub fn settled(&self, object: &Value) -> Option<Value> {
        match &self.source {
            Source::Definition(bare) => self.of_definition(bare, object),
            Source::Builtin(builtins, _) => stored(*builtins, object),
        }
    }

    /// Returns a write as the server reads it. For rules of a definition: the one write. For a policy: a creation, or an update through
    /// each of its `ways`. Writes that are invalid regardless of rules are left out.
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

    /// Reports whether one request writes the status and another everything else.
    pub(super) fn splits_status(&self) -> bool {
        let Source::Definition(bare) = &self.source else { return false };
        bare.definition().version(&self.version).is_some_and(|version| version.status_subresource)
    }

    /// Completes a write that a query asks for with what else the server requires, in each known way.
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
            // Fields that the server defaults are also stored, and may be immutable.
            let filled = stands.as_ref().map(|stands| builtin::completed(stands, new));
            let all = std::iter::once(of(new)).chain(filled);
            all.map(|new| (mended(updated, &self.plain, new), Some(old.clone()))).collect()
        };
        smallest.iter().flat_map(complete).collect()
    }

    /// Describes the validation that no schema expresses; `None` if there is none.
    pub(super) fn demands_more(&self) -> Option<String> {
        match &self.source {
            Source::Definition(_) => None,
            Source::Builtin(..) => {
                Some(format!("what a server demands of a {} beyond its types", self.kind.kind))
            }
        }
    }

    /// Reports whether requests are shown with defaults: a definition fills in little, a built-in kind would hide the rest.
    pub(super) const fn shows_defaults(&self) -> bool {
        matches!(self.source, Source::Definition(_))
    }

    /// Lists how an object differs from the objects that claims are about; an object that a server admits never does.
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

    /// Returns the schema as written; `None` for kinds without a definition.
    fn typed_source(&self) -> Option<Schema> {
        let Source::Definition(bare) = &self.source else { return None };
        Some(bare.definition().version(&self.version)?.schema.as_deref().cloned().unwrap_or_default())
    }

    /// Returns the schema as written, without rules.
    pub(super) fn without_rules(&self) -> Schema {
        without_schema_rules(&self.typed_source().unwrap_or_default())
    }

    /// Reports whether a schema equals the subject's, ignoring rules.
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

/// Returns an object as a server would store it, if it can.
fn stored(builtins: &dyn Builtins, object: &Value) -> Option<Value> {
    let created = builtins.prepare(object, None, false)?;
    let created = object_of(created)?;
    // Creation ignores the status of the request.
    if object.get("status").is_none_or(|status| created.get("status") == Some(status)) {
        return Some(created);
    }
    let mut with_status = created.clone();
    with_status.as_object_mut()?.insert("status".to_owned(), object.get("status")?.clone());
    let written = builtins.prepare(&with_status, Some(&created), true).and_then(object_of);
    Some(written.unwrap_or(created))
}

/// Returns the object if it is admitted.
fn object_of(prepared: Prepared) -> Option<Value> {
    (prepared.refusal.is_none() && prepared.strict.is_empty()).then_some(prepared.object)
}

/// Returns the kind of a version, and whether it is namespaced.
pub(super) fn kind_of(definition: &Definition, version: &str) -> (GroupVersionKind, bool) {
    let kind = GroupVersionKind::new(&*definition.group, version, &*definition.names.kind);
    (kind, definition.scope == Scope::Namespaced)
}

pub(super) fn is_name(name: &str) -> bool {
    /// Compiled once, since every candidate object has a name.
    static PATTERN: LazyLock<Pattern> = LazyLock::new(|| Pattern::new(NAME));
    name.len() <= 253 && PATTERN.is_match(name)
}

pub(super) fn compiled(definition: &Value) -> Result<CompiledCrd, SideError> {
    CompiledCrd::compile(definition).map_err(|errors| {
        SideError::of_fields(errors.into_iter().map(|error| (error.field.clone(), error.to_string())))
    })
}

/// Returns a definition without its rules.
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
