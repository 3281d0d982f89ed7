//! Rebuilds the admission request behind an audit event from the event and the known state of the object, and says what is unknown.
//! Nothing is invented: what the log does not contain stays unknown.
//!
//! ```text
//! Event ─┬─ answer ──────────────► object     as the server stored it, but for its resourceVersion
//!        ├─ sent, where denied ──► object     with defaults, over the old one
//! Store ─┴───────────────────────► old object
//! ```

use admit_policy::{
    Arena, GroupVersionKind, GroupVersionResource, Object, Operation, Prepared, Request, json,
};
use serde_json::{Map, Value, json};

use super::about::About;
use super::event::{Event, Head};
use super::kinds::Kinds;
use super::needs::Unknown;
use super::outcome::Outcome;
use super::patch;
use super::report::Cause;
use super::store::{Held, Origin};

/// What is known of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'r, 'd> {
    pub(super) event: &'r Event<'d>,
    pub(super) about: &'r About,
    pub(super) answer: Option<&'r Answer<'d>>,
    /// The object before the request, as far as the log has shown it.
    pub(super) held: Option<&'d Held>,
    pub(super) kinds: Kinds<'r>,
    /// Where objects are read into.
    pub(super) arena: &'d Arena,
}

/// The object that a server returned.
#[derive(Debug)]
pub(super) struct Answer<'d> {
    pub(super) text: &'d str,
    pub(super) head: Head,
}

/// A request, as far as it is known.
#[derive(Debug)]
pub(super) struct Rebuilt<'d> {
    pub(super) request: Request<'d>,
    pub(super) unknown: Unknown,
    /// Whether the object is the one that the client sent, since the request was denied.
    pub(super) as_sent: bool,
}

/// Parses JSON within a memory limit proportional to its length: `0,` becomes seventy bytes.
pub(super) fn document(text: &str) -> Option<Value> {
    json::parse(text.as_bytes()).ok().map(|document| document.value)
}

/// Returns the response, if it is the requested object: no Status, Table or PartialObjectMetadata.
pub(super) fn answered<'t>(event: &Event<'t>) -> Option<Answer<'t>> {
    let text = event.response_object?.get();
    let head = Head::of(text)?;
    let is_excerpt = head.api_version.as_deref().is_some_and(|version| version.starts_with("meta.k8s.io/"));
    (!head.is_status() && !is_excerpt).then_some(Answer { text, head })
}

/// Returns why objects are missing in the event.
fn missing(event: &Event<'_>) -> Cause {
    match &*event.level {
        _ if event.annotation("audit.k8s.io/truncated") == Some("true") => Cause::Truncated,
        "Request" | "RequestResponse" => Cause::Response,
        _ => Cause::Level,
    }
}

impl<'d> Record<'_, 'd> {
    /// Rebuilds the request.
    pub(super) fn rebuilt(&self) -> Result<Rebuilt<'d>, Cause> {
        let Self { event, about, kinds, .. } = *self;
        let user = event.acting().ok_or(Cause::Unreadable)?;
        let mut unknown = Unknown::default();
        let mut old = match about.operation {
            Operation::Update | Operation::Delete => self.before(),
            Operation::Create | Operation::Connect => Err(Cause::OldObject),
        };
        let mut object = match (about.operation, about.outcome) {
            (Operation::Delete, _) => Err(Cause::Level),
            (Operation::Connect, _) => Err(Cause::Connect),
            (_, Outcome::Admitted) if about.is_whole() || about.subresource == "scale" => {
                self.shown(old.as_ref().ok())
            }
            _ => self.sent(old.as_ref().ok()),
        };
        let known = kind_of(about, object.as_ref().ok(), old.as_ref().ok(), kinds);
        if known.is_none() {
            unknown.kind = Some(Cause::Kind);
        }
        let kind = known.unwrap_or_else(|| {
            GroupVersionKind::new(about.resource.group.as_str(), about.resource.version.as_str(), "")
        });
        old = old.and_then(|old| seen_as(old, about, &kind, kinds));
        let as_sent = about.outcome != Outcome::Admitted && object.is_ok();
        if as_sent && about.is_whole() {
            (object, old) = self.prepared(object, old, &kind);
        }
        if about.operation != Operation::Delete {
            unknown.object = object.as_ref().err().copied();
        }
        if matches!(about.operation, Operation::Update | Operation::Delete) {
            unknown.old_object = old.as_ref().err().copied();
        }
        let options = options(event, about);
        unknown.options = options.as_ref().err().copied();
        let object = if about.operation == Operation::Delete { None } else { object.ok() };
        let name = match &object {
            Some(object) if about.key.name.is_empty() => {
                object.metadata("name").unwrap_or_default().to_owned()
            }
            _ => about.key.name.clone(),
        };
        let namespace = if about.is_namespace() { name.clone() } else { about.key.namespace.clone() };
        let request = Request {
            uid: event.audit_id.clone().into_owned(),
            request_kind: kind.clone(),
            kind,
            request_resource: about.resource.clone(),
            resource: about.resource.clone(),
            request_subresource: about.subresource.clone(),
            subresource: about.subresource.clone(),
            name,
            namespace,
            operation: about.operation,
            user,
            object,
            old_object: old.ok(),
            options: options.ok().map(Object::from),
            dry_run: about.dry_run,
        };
        Ok(Rebuilt { request, unknown, as_sent })
    }

    /// Returns the object before the request, if the held state certainly is that.
    fn before(&self) -> Result<Object<'d>, Cause> {
        let Self { event, about, .. } = *self;
        let held = self.held.ok_or(Cause::OldObject)?;
        let after = self.answer.filter(|_| about.outcome == Outcome::Admitted).map(|answer| &answer.head);
        let deleted = event.response_status.as_ref().and_then(|status| status.details.as_ref()?.uid.as_ref());
        if let Some(after) = after {
            let is_later = match (after.version(), held.version) {
                // A dump may already contain the result of this request: a write that changes nothing keeps the version.
                (Some(after), Some(held_version)) if held.origin == Origin::Dump => after > held_version,
                (Some(after), Some(held_version)) => after >= held_version,
                _ => true,
            };
            if !is_later && about.subresource != "scale" {
                return Err(Cause::Order);
            }
        }
        let after = after.and_then(|head| head.metadata.as_ref());
        let is_other =
            |uid: Option<&String>| uid.is_some_and(|uid| held.uid.as_deref().is_some_and(|held| held != uid));
        if is_other(after.and_then(|after| after.uid.as_ref()))
            || (about.operation == Operation::Delete && is_other(deleted))
        {
            return Err(Cause::OldObject);
        }
        // One write raises the generation by at most one.
        if let (Some(before), Some(after)) = (held.generation, after.and_then(|after| after.generation))
            && about.is_whole()
            && !(0..=1).contains(&after.saturating_sub(before))
        {
            return Err(Cause::Order);
        }
        // An update with a resourceVersion replaces exactly that version.
        let sent = event.request_object.filter(|_| event.verb == "update" && about.is_whole());
        let sent = sent.and_then(|text| Head::of(text.get())?.version()).filter(|version| *version != 0);
        if sent.is_some() && held.version.is_some() && sent != held.version {
            return Err(Cause::Order);
        }
        self.arena.object(&held.text).ok_or(Cause::OldObject)
    }

    /// Returns the admitted object: as the server stored it, with its previous resourceVersion.
    fn shown(&self, old: Option<&Object<'d>>) -> Result<Object<'d>, Cause> {
        let answer = self.answer.ok_or_else(|| missing(self.event))?;
        let object = self.arena.object(answer.text).ok_or(Cause::Unreadable)?;
        let version = old.and_then(|old| old.metadata("resourceVersion"));
        if self.about.operation != Operation::Create && version.is_none() {
            return answer.head.metadata.as_ref().map(|_| object).ok_or(Cause::Unreadable);
        }
        let version = version.filter(|_| self.about.operation != Operation::Create);
        self.arena.with_version(&object, version).ok_or(Cause::Unreadable)
    }

    /// Returns the object that the client sent.
    fn sent(&self, old: Option<&Object<'d>>) -> Result<Object<'d>, Cause> {
        let Self { event, about, kinds, .. } = *self;
        let text = event.request_object.ok_or_else(|| missing(event))?;
        let sent = document(text.get()).ok_or(Cause::Unreadable)?;
        let mut object = match &*event.verb {
            // Such a patch applies to the subresource's own object, such as a Scale.
            "patch" if !about.is_whole() => return Err(Cause::Patch),
            "patch" => {
                let old = old.ok_or(Cause::OldObject)?.value();
                let named = event.parameter("fieldManager").is_some();
                let is_custom = kinds.defines(&about.resource);
                patch::patched(&old, &sent, named, is_custom, kinds.builtins()).ok_or(Cause::Patch)?
            }
            _ => sent,
        };
        let metadata = object.as_object_mut().ok_or(Cause::Unreadable)?;
        let metadata = metadata.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        let metadata = metadata.as_object_mut().ok_or(Cause::Unreadable)?;
        if !about.key.namespace.is_empty() {
            metadata.insert("namespace".to_owned(), about.key.namespace.as_str().into());
        }
        Ok(object.into())
    }

    /// Prepares a sent object and the previous one as the server shows them to policies.
    fn prepared(&self, object: Known<'d>, old: Known<'d>, kind: &GroupVersionKind) -> (Known<'d>, Known<'d>) {
        let Self { about, kinds, .. } = *self;
        let (Ok(new), Some(builtins)) = (&object, kinds.builtins()) else { return (object, old) };
        if kinds.crd_of(kind).is_some() {
            // The definition applies its defaults later.
            return (object, old);
        }
        if about.operation == Operation::Update && old.is_err() {
            return (Err(Cause::OldObject), old);
        }
        let before = old.as_ref().ok().filter(|_| about.operation == Operation::Update).map(Object::value);
        match builtins.prepare(&new.value(), before.as_deref(), about.subresource == "status") {
            Some(Prepared { refusal: Some(_), .. }) => (Err(Cause::Invalid), old),
            Some(Prepared { object, old: before, .. }) => {
                (Ok(object.into()), before.map_or(old, |before| Ok(before.into())))
            }
            None => (object, old),
        }
    }
}

/// An object of the request, or why it is unknown.
type Known<'d> = Result<Object<'d>, Cause>;

/// Returns the kind of the object that policies see.
fn kind_of(
    about: &About,
    object: Option<&Object<'_>>,
    old: Option<&Object<'_>>,
    kinds: Kinds<'_>,
) -> Option<GroupVersionKind> {
    let GroupVersionResource { group, version, .. } = &about.resource;
    if about.is_whole() {
        let named = object.or(old).and_then(|object| object.text("kind"));
        let of = |kind: &str| GroupVersionKind::new(group.as_str(), version.as_str(), kind);
        return named.filter(|kind| !kind.is_empty()).map(of).or_else(|| kinds.kind_of(&about.resource));
    }
    let of = |version: &str, kind: &str| Some(GroupVersionKind::from_api_version(version, kind));
    let sent = object.map(own_kind).filter(|kind| !kind.kind.is_empty());
    sent.or_else(|| match (about.resource.resource.as_str(), about.subresource.as_str()) {
        (_, "scale") => of("autoscaling/v1", "Scale"),
        ("pods", "eviction") => of("policy/v1", "Eviction"),
        ("pods", "binding") => of("v1", "Binding"),
        ("serviceaccounts", "token") => of("authentication.k8s.io/v1", "TokenRequest"),
        ("pods", "exec") => of("v1", "PodExecOptions"),
        ("pods", "attach") => of("v1", "PodAttachOptions"),
        ("pods", "portforward") => of("v1", "PodPortForwardOptions"),
        ("pods", "proxy") => of("v1", "PodProxyOptions"),
        ("services", "proxy") => of("v1", "ServiceProxyOptions"),
        ("nodes", "proxy") => of("v1", "NodeProxyOptions"),
        _ => None,
    })
}

/// Returns the old object in the version of the request; for a scale, its previous Scale.
fn seen_as<'d>(old: Object<'d>, about: &About, kind: &GroupVersionKind, kinds: Kinds<'_>) -> Known<'d> {
    if about.subresource == "scale" {
        let (own, old) = (own_kind(&old), old.value());
        let paths =
            kinds.crd_of(&own).and_then(|crd| crd.version(&own.version)).map(|version| version.scale());
        let scale = match paths {
            Some(None) => None,
            Some(paths) => kinds.builtins().and_then(|builtins| builtins.scale(&old, paths)),
            None => kinds.builtins().and_then(|builtins| builtins.scale(&old, None)),
        };
        return scale.map(Object::from).ok_or(Cause::OldObject);
    }
    if !about.is_whole() || old.text("apiVersion") == Some(&kind.api_version()) {
        return Ok(old);
    }
    kinds.convert(&old.value(), kind).map(Object::from).ok_or(Cause::Conversion)
}

fn own_kind(object: &Object<'_>) -> GroupVersionKind {
    let text = |field| object.text(field).unwrap_or_default();
    GroupVersionKind::from_api_version(text("apiVersion"), text("kind"))
}

/// Returns the options of the request from its query; those of a deletion from its body, if there is one.
fn options(event: &Event<'_>, about: &About) -> Result<Value, Cause> {
    let kind = match about.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return Err(Cause::Connect),
    };
    if about.operation == Operation::Delete {
        if let Some(sent) = event.request_object {
            return document(sent.get()).ok_or(Cause::Unreadable);
        }
        if missing(event) != Cause::Response {
            return Err(missing(event));
        }
    }
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if let Some(fields) = options.as_object_mut() {
        if about.dry_run {
            fields.insert("dryRun".to_owned(), json!(["All"]));
        }
        for name in ["fieldManager", "fieldValidation", "propagationPolicy"] {
            if let Some(value) = event.parameter(name).filter(|value| !value.is_empty()) {
                fields.insert(name.to_owned(), value.into());
            }
        }
    }
    Ok(options)
}
