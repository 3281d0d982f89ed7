//! Replays recorded requests: decides the requests of an audit log, or of recorded AdmissionReviews, with given policies.
//!
//! ```text
//! line ─► event ─► about ─► rebuild ─► judge ─► report
//!                             ▲  │
//!                             │  ▼
//!                            store        what objects were before, as earlier events and dumps have shown them
//! ```
//!
//! Every verdict is that of admit-policy. Data missing in the log is unknown: a request is decided by the policies that do not read it,
//! or else counted as undecided, with the [`Cause`]. Memory is bounded, however long the log is.

mod about;
mod event;
mod host;
mod judge;
mod kinds;
mod needs;
mod outcome;
mod patch;
mod rebuild;
mod report;
mod store;
mod tally;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use admit_policy::{Arena, GroupVersionKind, Request, Review};
use jiff::Timestamp;
use serde_json::Value;

pub use self::event::Unread;
pub(crate) use self::judge::WITHHELD;
pub use self::needs::Side;
pub use self::report::{
    Cause, Counts, Effect, Group, GroupKey, Place, Refused, Report, Sample, Undecided, UnreadLines,
};

use self::about::{About, Asked};
use self::event::{Event, Head, Line};
use self::judge::{Case, Judged, judge};
use self::kinds::Kinds;
use self::needs::Unknown;
use self::outcome::Outcome;
use self::rebuild::{Answer, Rebuilt, Record, answered, document};
use self::store::{Key, Origin, Store};
use self::tally::{Tally, Told, raise};

/// The maximum length of a line in bytes. A request has at most 3 MiB, and an event holds request and response.
pub const MAX_LINE: usize = 16 << 20;
/// The maximum size of all remembered object states, in bytes.
const STATE_BYTES: usize = 64 << 20;
/// The maximum number of resources for which it is cached whether policies may apply.
const MAX_RESOURCES: usize = 10_000;

/// A replay in progress.
///
/// ```
/// use admit_analysis::replay::{Effect, Place, Replay, Side};
/// use admit_policy::{PolicySet, manifest};
///
/// let policies = "
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicy
/// metadata: {name: few-replicas}
/// spec:
///   matchConstraints:
///     resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
///   validations: [{expression: object.spec.replicas <= 5, message: too many}]
/// ---
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicyBinding
/// metadata: {name: few-replicas}
/// spec: {policyName: few-replicas, validationActions: [Deny]}
/// ";
/// let documents = manifest::read("policy.yaml", policies).unwrap();
/// let set = PolicySet::load(&documents).unwrap();
/// let mut replay = Replay::new(Side::new(&set, &documents, false), None);
/// let line = br#"{"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete",
///     "verb": "create", "user": {"username": "ann"}, "responseStatus": {"code": 201},
///     "objectRef": {"resource": "deployments", "apiGroup": "apps", "apiVersion": "v1", "namespace": "shop", "name": "web"},
///     "responseObject": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 9}}}"#;
/// replay.line(Place { file: "audit.log", line: 1 }, line);
/// let report = replay.finish();
/// assert_eq!(report.counts.denied, 1);
/// let (key, group) = report.groups.iter().next().unwrap();
/// assert_eq!((key.user.as_str(), key.effect), ("ann", Some(Effect::Deny)));
/// assert_eq!(group.samples[0].message, "too many");
/// ```
#[derive(Debug)]
pub struct Replay<'s> {
    /// The policies; the newer ones if two folders are compared.
    side: Side<'s>,
    /// The older policies.
    older: Option<Side<'s>>,
    store: Store,
    tally: Tally,
    /// By group and resource, whether policies may apply to its objects.
    spoken_of: HashMap<(String, String), bool>,
}

impl<'s> Replay<'s> {
    /// Starts a replay with the policies of `side`; with `older`, compares the decisions of both.
    #[must_use]
    pub fn new(side: Side<'s>, older: Option<Side<'s>>) -> Self {
        let mut tally = Tally::default();
        tally.report.compared = older.is_some();
        Self { side, older, store: Store::new(STATE_BYTES), tally, spoken_of: HashMap::new() }
    }

    /// Adds an object as it was at the start of the log.
    pub fn hold(&mut self, object: &Value) {
        let kind = GroupVersionKind::of(object);
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let resource = self.kinds().resource_of(&kind);
        if !self.is_spoken_of(&resource.group, &resource.resource) {
            return;
        }
        let key = Key {
            group: resource.group,
            resource: resource.resource,
            namespace: text("/metadata/namespace").to_owned(),
            name: text("/metadata/name").to_owned(),
        };
        let text = object.to_string();
        if let Some(head) = Head::of(&text) {
            self.store.insert(key, &text, Origin::Dump, &head);
        }
    }

    /// Processes the next line of a log, without its line feed.
    pub fn line(&mut self, place: Place<'_>, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        raise(&mut self.tally.report.counts.lines);
        match event::read(line) {
            Ok(Line::Event(event)) => self.event(&event, place),
            Ok(Line::Events(items)) => {
                for item in items {
                    match event::read(item.get().as_bytes()) {
                        Ok(Line::Event(event)) => self.event(&event, place),
                        Ok(Line::Events(_) | Line::Review) => self.tally.unread(place, Unread::Foreign),
                        Err(unread) => self.tally.unread(place, unread),
                    }
                }
            }
            Ok(Line::Review) => self.review(line, place),
            Err(unread) => self.tally.unread(place, unread),
        }
    }

    /// Counts something that could not be read as a line.
    pub fn unread(&mut self, place: Place<'_>, unread: Unread) {
        self.tally.unread(place, unread);
    }

    /// Returns the report.
    #[must_use]
    pub fn finish(self) -> Report {
        let mut report = self.tally.report;
        report.counts.evicted = self.store.evicted();
        report
    }

    fn kinds(&self) -> Kinds<'s> {
        let newer = self.side.set.documents();
        Kinds::new(self.older.as_ref().map_or(newer, |older| older.set.documents()), newer)
    }

    fn is_spoken_of(&mut self, group: &str, resource: &str) -> bool {
        let key = (group.to_owned(), resource.to_owned());
        if let Some(known) = self.spoken_of.get(&key) {
            return *known;
        }
        let sides = [Some(&self.side), self.older.as_ref()];
        let speaks = sides.into_iter().flatten().any(|side| side.speaks_of(group, resource));
        // Policies read the Namespaces of other objects, so these are always remembered.
        let speaks = speaks || (group.is_empty() && resource == "namespaces");
        if self.spoken_of.len() < MAX_RESOURCES {
            self.spoken_of.insert(key, speaks);
        }
        speaks
    }

    fn event(&mut self, event: &Event<'_>, place: Place<'_>) {
        let counts = &mut self.tally.report.counts;
        raise(&mut counts.events);
        if event.stage != "ResponseComplete" {
            return raise(&mut counts.other_stages);
        }
        match Asked::of(event) {
            Asked::Read => raise(&mut counts.reads),
            Asked::Collection(about) => self.collection(event, &about, place),
            Asked::Write(about) => self.write(event, &about, place),
        }
    }

    /// Handles the deletion of many objects, which the event does not list.
    fn collection(&mut self, event: &Event<'_>, about: &About, place: Place<'_>) {
        if let Outcome::Refused(by) = about.outcome {
            return self.tally.refused(by);
        }
        if !about.dry_run {
            self.store.remove_all(&about.key.group, &about.key.resource, &about.key.namespace);
        }
        let sides = [Some(&self.side), self.older.as_ref()];
        if sides.into_iter().flatten().any(|side| !side.validating(about.concern()).is_empty()) {
            raise(&mut self.tally.report.counts.undecided);
            self.tally.undecided(Cause::Collection, &about.shown(), &told(event, place));
        } else {
            raise(&mut self.tally.report.counts.unmatched);
        }
    }

    fn write(&mut self, event: &Event<'_>, about: &About, place: Place<'_>) {
        let is_spoken_of = self.is_spoken_of(&about.key.group, &about.key.resource);
        let sides = [Some(&self.side), self.older.as_ref()];
        let defined =
            sides.into_iter().flatten().any(|side| side.defines(&about.key.group, &about.key.resource));
        match about.outcome {
            Outcome::Refused(by) => {
                if by == Refused::Server {
                    self.store.remove(&about.key);
                }
                return self.tally.refused(by);
            }
            Outcome::Invalid if !defined => return self.tally.refused(Refused::Validation),
            _ if !is_spoken_of => return raise(&mut self.tally.report.counts.unmatched),
            Outcome::Admitted | Outcome::Denied | Outcome::Invalid | Outcome::Untold => {}
        }
        if about.dry_run {
            raise(&mut self.tally.report.counts.dry_runs);
        }
        let answer = answered(event);
        self.decide(event, about, answer.as_ref(), place);
        if !about.dry_run {
            self.learn(about, answer);
        }
    }

    /// Decides a request to which policies may apply.
    fn decide(&mut self, event: &Event<'_>, about: &About, answer: Option<&Answer<'_>>, place: Place<'_>) {
        let sides = [Some(&self.side), self.older.as_ref()];
        let concern = about.concern();
        let is_defined = about.is_whole() && self.kinds().defines(&about.resource);
        let is_asked =
            |side: &Side<'_>| !side.validating(concern).is_empty() || !side.mutating(concern).is_empty();
        if !is_defined && !sides.into_iter().flatten().any(is_asked) {
            return raise(&mut self.tally.report.counts.unmatched);
        }
        let held = self.store.get(&about.key).filter(|_| !about.key.name.is_empty()).cloned();
        let length = held.as_ref().map_or(0, |held| held.text.len());
        let arena = Arena::for_text(length.saturating_add(answer.map_or(0, |answer| answer.text.len())));
        let record = Record { event, about, answer, held: held.as_ref(), kinds: self.kinds(), arena: &arena };
        let found = match about.outcome {
            Outcome::Untold => Err(Cause::Response),
            _ => record.rebuilt(),
        };
        let told = told(event, place);
        match found {
            Ok(Rebuilt { request, unknown, as_sent }) => {
                if as_sent {
                    raise(&mut self.tally.report.counts.as_sent);
                }
                let told = Told { name: &request.name, ..told };
                self.settle(&request, unknown, Some(about.outcome), &told, &about.shown());
            }
            Err(cause) => {
                raise(&mut self.tally.report.counts.undecided);
                self.tally.undecided(cause, &about.shown(), &told);
            }
        }
    }

    /// Remembers the object as it is after the request.
    fn learn(&mut self, about: &About, answer: Option<Answer<'_>>) {
        let key = &about.key;
        match about.outcome {
            Outcome::Admitted => {}
            Outcome::Untold => return self.store.remove(key),
            Outcome::Denied | Outcome::Invalid | Outcome::Refused(_) => return,
        }
        if !about.is_whole() {
            // The object after a scale, binding or eviction request is not in the event.
            if matches!(about.subresource.as_str(), "scale" | "binding" | "eviction") {
                self.store.remove(key);
            }
            return;
        }
        let Some(Answer { text, head }) = answer else { return self.store.remove(key) };
        if about.operation == admit_policy::Operation::Delete && !is_still_there(&head) {
            return self.store.remove(key);
        }
        let name = Some(key.name.clone())
            .filter(|name| !name.is_empty())
            .or_else(|| head.metadata.as_ref()?.name.clone());
        let Some(name) = name else { return };
        let key = Key { name, ..key.clone() };
        let version = head.version();
        let is_older = |held: &store::Held| held.origin == Origin::Log && version < held.version;
        if !self.store.get(&key).is_some_and(is_older) {
            self.store.insert(key, text, Origin::Log, &head);
        }
    }

    fn review(&mut self, line: &[u8], place: Place<'_>) {
        let arena = Arena::for_text(line.len());
        let Ok(review) = Review::read(&arena, line) else {
            return self.tally.unread(place, Unread::Malformed);
        };
        let allowed = review.envelope.pointer("/response/allowed").and_then(Value::as_bool);
        let Ok(request) = Request::from_review(review) else {
            return self.tally.unread(place, Unread::Foreign);
        };
        raise(&mut self.tally.report.counts.reviews);
        let told = Told { place, audit_id: &request.uid, name: &request.name, time: "" };
        let recorded = allowed.map(|allowed| if allowed { Outcome::Admitted } else { Outcome::Denied });
        let resource = request.resource.group_resource();
        self.settle(&request, Unknown::default(), recorded, &told, &resource);
    }

    /// Decides a request and records the result.
    fn settle(
        &mut self,
        request: &Request<'_>,
        unknown: Unknown,
        recorded: Option<Outcome>,
        told: &Told<'_>,
        resource: &str,
    ) {
        let time = told.time.parse::<Timestamp>().ok().map(SystemTime::from);
        let case = Case { request, unknown, namespace: self.namespace(&request.namespace), time };
        let judged = judge(&self.side, &case);
        let before = self.older.as_ref().map(|older| judge(older, &case));
        let counts = &mut self.tally.report.counts;
        let undecided = |judged: &Judged| judged.undecided.filter(|_| !judged.denied);
        let cause = undecided(&judged).or(before.as_ref().and_then(undecided));
        match cause {
            Some(cause) => {
                raise(&mut counts.undecided);
                self.tally.undecided(cause, resource, told);
            }
            None => tell(counts, &judged, before.as_ref(), recorded),
        }
        // For an undecided request it is unknown whether the decision changes.
        if before.is_some() && cause.is_some() {
            return;
        }
        self.group(request, &judged, before.as_ref(), told);
    }

    fn group(&mut self, request: &Request<'_>, judged: &Judged, before: Option<&Judged>, told: &Told<'_>) {
        let kind = match (request.kind.kind.as_str(), request.kind.group.as_str()) {
            ("", _) => request.resource.group_resource(),
            (kind, "") => kind.to_owned(),
            (kind, group) => format!("{kind}.{group}"),
        };
        let key = |policy: &str| GroupKey {
            policy: policy.to_owned(),
            user: request.user.username.clone(),
            namespace: request.namespace.clone(),
            kind: kind.clone(),
            before: None,
            effect: None,
        };
        for (policy, (effect, message)) in &judged.effects {
            let known = before.and_then(|before| before.effects.get(policy)).map(|(effect, _)| *effect);
            if before.is_none() || known != Some(*effect) {
                let key = GroupKey { before: known, effect: Some(*effect), ..key(policy) };
                self.tally.effect(&key, message, told);
            }
        }
        for (policy, (effect, message)) in before.map(|before| &before.effects).into_iter().flatten() {
            if !judged.effects.contains_key(policy) {
                let key = GroupKey { before: Some(*effect), ..key(policy) };
                self.tally.effect(&key, message, told);
            }
        }
    }

    /// Returns the Namespace of that name, if the log or a dump contains it.
    fn namespace(&mut self, name: &str) -> Option<Arc<Value>> {
        let sides = [Some(&self.side), self.older.as_ref()];
        if name.is_empty() || !sides.into_iter().flatten().any(Side::asks_for_namespaces) {
            return None;
        }
        let key = Key { resource: "namespaces".to_owned(), name: name.to_owned(), ..Key::default() };
        document(&self.store.get(&key)?.text).map(Arc::new)
    }
}

/// Counts a decided request.
fn tell(counts: &mut Counts, judged: &Judged, before: Option<&Judged>, recorded: Option<Outcome>) {
    if !judged.matched && before.is_none_or(|before| !before.matched) {
        return raise(&mut counts.unmatched);
    }
    let was_denied = match (before, recorded) {
        (Some(before), _) => Some(before.denied),
        (None, Some(Outcome::Admitted)) => Some(false),
        (None, Some(Outcome::Denied | Outcome::Invalid)) => Some(true),
        (None, Some(Outcome::Refused(_) | Outcome::Untold) | None) => None,
    };
    let warns = |judged: &Judged| judged.effects.values().any(|(effect, _)| *effect == Effect::Warn);
    if judged.denied {
        raise(&mut counts.denied);
    } else {
        raise(&mut counts.admitted);
        if warns(judged) {
            raise(&mut counts.warned);
        }
    }
    match was_denied {
        Some(false) if judged.denied => raise(&mut counts.newly_denied),
        Some(true) if !judged.denied => raise(&mut counts.newly_admitted),
        Some(_) | None => {}
    }
    let effects = |judged: &Judged| {
        judged.effects.iter().map(|(policy, (effect, _))| (policy.clone(), *effect)).collect::<Vec<_>>()
    };
    if before.is_some_and(|before| effects(before) != effects(judged)) {
        raise(&mut counts.changed);
    }
}

/// Reports whether a deleted object still exists, waiting for finalizers or its grace period.
fn is_still_there(head: &Head) -> bool {
    let Some(meta) = &head.metadata else { return false };
    let waits = meta.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0)
        || meta.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
    meta.deletion_timestamp.is_some() && waits
}

fn told<'r>(event: &'r Event<'_>, place: Place<'r>) -> Told<'r> {
    let name = event.object_ref.as_ref().map(|about| &*about.name).unwrap_or_default();
    Told { place, audit_id: &event.audit_id, name, time: &event.request_received_timestamp }
}
