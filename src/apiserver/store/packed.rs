//! Represents an object in the store by its JSON, which takes a tenth of the memory of its parsed form. The parsed
//! forms of the objects that were written or read last are cached.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use admit_apimachinery::weight;
use admit_policy::json;
use admit_policy::json::JsonError;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Revision;

/// Size of the cache of parsed objects, in bytes of memory: some forty pods. A client that updates an object that it has just
/// read, and its watchers, find it parsed.
const RECENT: usize = 4 << 20;

/// This field is often half of an object's metadata, and never needed when many objects are walked.
const MANAGED: &str = "managedFields";

/// An object: its JSON, and its parsed form while that is in use.
///
/// [`Store`](super::Store) has an example.
pub struct Packed {
    text: Box<[u8]>,
    version: Place,
    /// The size of the parsed form, by [`estimate`].
    weight: usize,
    values: Mutex<Values>,
}

/// Whether the parsed form of an object is in memory.
#[derive(Clone, Debug, Default)]
enum Values {
    #[default]
    Gone,
    /// In the cache, until more recent ones displace it.
    Recent(Arc<Value>),
    /// Pinned: in memory as long as it is the newest version of the object.
    Pinned(Arc<Value>),
}

impl Values {
    fn get(&self) -> Option<Arc<Value>> {
        match self {
            Self::Gone => None,
            Self::Recent(values) | Self::Pinned(values) => Some(Arc::clone(values)),
        }
    }
}

/// Position of the value of `metadata.resourceVersion` in the JSON of an object; empty if it has none.
type Place = Range<u32>;

/// The JSON of an object that has no revision yet.
pub(super) struct Draft {
    text: Vec<u8>,
    version: Place,
    weight: usize,
}

impl Draft {
    /// Serializes `object`, and adds a member for its revision to it.
    pub(super) fn of(object: &mut Value) -> Self {
        set_resource_version(object, 0);
        let mut draft = Self { text: Vec::new(), version: Place::default(), weight: estimate(object) };
        match object {
            Value::Object(members) => draft.members(members),
            other => draft.write(other),
        }
        draft
    }

    /// Returns the object at `revision`, packed and parsed.
    pub(super) fn at(self, revision: Revision, mut object: Value) -> (Arc<Packed>, Arc<Value>) {
        set_resource_version(&mut object, revision);
        let values = Arc::new(object);
        let (text, version) = with_revision(&self.text, &self.version, revision);
        let packed = Packed { text, version, weight: self.weight, values: Mutex::default() };
        (Arc::new(packed), values)
    }

    fn members(&mut self, members: &Map<String, Value>) {
        self.text.push(b'{');
        for (place, (name, value)) in members.iter().enumerate() {
            self.name(place, name);
            match value {
                Value::Object(metadata) if name == "metadata" => self.metadata(metadata),
                other => self.write(other),
            }
        }
        self.text.push(b'}');
    }

    fn metadata(&mut self, members: &Map<String, Value>) {
        self.text.push(b'{');
        for (place, (name, value)) in members.iter().enumerate() {
            self.name(place, name);
            let start = self.text.len();
            self.write(value);
            if name == "resourceVersion" {
                self.version = place_of(start, self.text.len());
            }
        }
        self.text.push(b'}');
    }

    fn name(&mut self, place: usize, name: &str) {
        if place > 0 {
            self.text.push(b',');
        }
        self.write(name);
        self.text.push(b':');
    }

    fn write(&mut self, value: &(impl serde::Serialize + ?Sized)) {
        // Serializing values or names to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.text, value);
    }
}

impl Packed {
    /// Reads an object that was stored as JSON, and its revision; None if it has no revision.
    ///
    /// # Errors
    /// When the JSON is damaged.
    pub(super) fn read(text: &[u8]) -> Result<Option<(Revision, Arc<Self>)>, JsonError> {
        let mut object = json::reread(text)?;
        let revision = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let Some(revision) = revision.and_then(|text| text.parse().ok()) else { return Ok(None) };
        let (packed, _) = Draft::of(&mut object).at(revision, object);
        Ok(Some((revision, packed)))
    }

    /// Returns the same object at another revision, without parsing it.
    pub(super) fn at(&self, revision: Revision) -> Arc<Self> {
        let (text, version) = with_revision(&self.text, &self.version, revision);
        Arc::new(Self { text, version, weight: self.weight, values: Mutex::default() })
    }

    /// Returns the object as JSON, without white space.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns roughly the bytes that the parsed form takes in memory.
    #[must_use]
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Returns the bytes that the object takes in the store.
    pub(super) fn held(&self) -> usize {
        self.text.len().saturating_add(size_of::<Self>())
    }

    /// Returns the parsed object; parses it unless the parsed form is in memory.
    #[must_use]
    pub fn values(&self) -> Arc<Value> {
        let kept = self.kept().get();
        kept.unwrap_or_else(|| Arc::new(self.made()))
    }

    /// Returns the parsed object if it is in memory.
    pub(crate) fn unpacked(&self) -> Option<Arc<Value>> {
        self.kept().get()
    }

    /// Like [`Self::values`], but kept in memory until the object is changed: for objects that the server itself reads again
    /// and again.
    #[must_use]
    pub(crate) fn pinned(&self) -> Arc<Value> {
        let values = self.values();
        *self.kept() = Values::Pinned(Arc::clone(&values));
        values
    }

    /// Reverses [`Self::pinned`]: the parsed form is cached like any other.
    pub(super) fn unpin(&self) {
        let mut kept = self.kept();
        if let Values::Pinned(_) = *kept {
            *kept = Values::Gone;
        }
    }

    fn made(&self) -> Value {
        json::reread(&self.text).unwrap_or_else(|error| {
            tracing::error!(%error, "an object in memory is damaged");
            Value::Null
        })
    }

    /// Parses what most walks over many objects need: `apiVersion` and `metadata` without `managedFields`.
    #[must_use]
    pub(crate) fn head(&self) -> Value {
        #[derive(Deserialize)]
        struct Head<'t> {
            #[serde(borrow, rename = "apiVersion")]
            api_version: &'t RawValue,
            #[serde(borrow)]
            metadata: IndexMap<String, &'t RawValue>,
        }
        let kept = self.kept().get();
        let text = kept.is_none().then(|| serde_json::from_slice::<Head<'_>>(&self.text).ok()).flatten();
        let (api_version, metadata): (Value, Map<String, Value>) =
            if let Some(Head { api_version, metadata }) = text {
                let value = |text: &RawValue| json::reread(text.get().as_bytes()).unwrap_or_default();
                let told = metadata.into_iter().filter(|(name, _)| name != MANAGED);
                (value(api_version), told.map(|(name, text)| (name, value(text))).collect())
            } else {
                let values = kept.unwrap_or_else(|| self.values());
                let members = values.get("metadata").and_then(Value::as_object).into_iter().flatten();
                let told = members.filter(|(name, _)| *name != MANAGED);
                let metadata = told.map(|(name, value)| (name.clone(), value.clone())).collect();
                (values.get("apiVersion").cloned().unwrap_or_default(), metadata)
            };
        serde_json::json!({"apiVersion": api_version, "metadata": metadata})
    }

    // A panic while the lock is held leaves no partial change.
    fn kept(&self) -> MutexGuard<'_, Values> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text))
    }
}

/// The cache of parsed objects, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    order: VecDeque<(Arc<Packed>, usize)>,
    bytes: usize,
}

/// Removes the parsed forms: objects shared with another store would keep theirs for ever.
impl Drop for Entries {
    fn drop(&mut self) {
        for (packed, _) in self.order.drain(..) {
            let mut kept = packed.kept();
            if let Values::Recent(_) = *kept {
                *kept = Values::Gone;
            }
        }
    }
}

impl Recent {
    /// Returns the parsed form of `packed`, and caches it.
    pub(super) fn values(&self, packed: &Arc<Packed>) -> Arc<Value> {
        let kept = packed.kept().get();
        kept.unwrap_or_else(|| {
            let values = Arc::new(packed.made());
            self.keep(packed, &values);
            values
        })
    }

    /// Caches `values` with `packed`, and removes the oldest entries that exceed the size of the cache.
    pub(super) fn keep(&self, packed: &Arc<Packed>, values: &Arc<Value>) {
        let bytes = weight::of(values);
        if bytes > RECENT {
            return;
        }
        {
            let mut kept = packed.kept();
            if kept.get().is_some() {
                return;
            }
            *kept = Values::Recent(Arc::clone(values));
        }
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.order.push_back((Arc::clone(packed), bytes));
        entries.bytes = entries.bytes.saturating_add(bytes);
        let mut forgotten = Vec::new();
        while entries.bytes > RECENT
            && let Some((oldest, bytes)) = entries.order.pop_front()
        {
            entries.bytes = entries.bytes.saturating_sub(bytes);
            let mut kept = oldest.kept();
            if let Values::Recent(_) = *kept {
                forgotten.push(std::mem::take(&mut *kept));
            }
        }
        drop(entries);
        // Dropping large values takes time, so it happens after the lock is released.
        drop(forgotten);
    }
}

/// Returns `text` with `revision` at `version`, and where it stands there; the text as it is where it has no place for it.
fn with_revision(text: &[u8], version: &Place, revision: Revision) -> (Box<[u8]>, Place) {
    let (start, end) = (version.start as usize, version.end as usize);
    match (text.get(..start), text.get(end..)) {
        (Some(before), Some(after)) if start < end => {
            let revision = format!("\"{revision}\"");
            let version = place_of(start, start + revision.len());
            ([before, revision.as_bytes(), after].concat().into(), version)
        }
        _ => (text.into(), Place::default()),
    }
}

/// Objects are limited to a few megabytes; one of more than 4 GiB would have no place for its revision.
fn place_of(start: usize, end: usize) -> Place {
    match (u32::try_from(start), u32::try_from(end)) {
        (Ok(start), Ok(end)) => start..end,
        _ => Place::default(),
    }
}

fn set_resource_version(object: &mut Value, revision: Revision) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    }
}

/// Estimates the bytes that an object takes in memory.
pub(crate) fn estimate(value: &Value) -> usize {
    const NODE: usize = 32;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => NODE,
        Value::String(text) => NODE + text.len(),
        Value::Array(items) => NODE + items.iter().map(estimate).sum::<usize>(),
        Value::Object(members) => {
            NODE + members.iter().map(|(key, value)| NODE + key.len() + estimate(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn packed(object: &Value, revision: Revision) -> (Arc<Packed>, Arc<Value>) {
        let mut object = object.clone();
        Draft::of(&mut object).at(revision, object)
    }

    #[test]
    fn an_object_comes_back_as_it_was() {
        let mut deep = json!({"resourceVersion": "7"});
        for _ in 0..400 {
            deep = json!({ "metadata": [deep] });
        }
        let object = json!({
            "kind": "Thing", "apiVersion": "example.com/v1",
            "metadata": {"name": "\"\u{0}\u{e9}", "resourceVersion": "0", "labels": {"resourceVersion": "x"}},
            "spec": deep, "numbers": [0, -1, u64::MAX, i64::MIN, 1.0, -0.0, 1e300, 5e-324, 0.1], "": {}, "n": null,
        });
        let (kept, values) = packed(&object, 1_234_567);
        assert_eq!(values["metadata"]["resourceVersion"], "1234567");
        assert_eq!(kept.values(), values);
        assert_eq!(kept.text(), values.to_string().as_bytes());
        let (revision, again) = Packed::read(kept.text()).unwrap().unwrap();
        assert_eq!((revision, again.text()), (1_234_567, kept.text()));
        for revision in [1, 1_234_567, u64::MAX] {
            let later = kept.at(7).at(revision);
            assert_eq!(later.text(), packed(&object, revision).0.text());
            assert_eq!((&later.version, later.weight), (&packed(&object, revision).0.version, kept.weight));
        }
        assert_eq!(kept.head(), json!({"apiVersion": "example.com/v1", "metadata": values["metadata"]}));
        for other in
            [json!({"metadata": {}}), json!({"apiVersion": "v1", "kind": "A", "metadata": {}}), json!(3)]
        {
            let (kept, values) = packed(&other, 9);
            assert_eq!((kept.text(), kept.values()), (values.to_string().as_bytes(), values.clone()));
            assert_eq!(kept.at(10).text(), packed(&other, 10).0.text());
        }
    }

    #[test]
    fn what_is_pinned_stays_until_the_object_is_changed() {
        let (kept, _) = packed(&json!({"metadata": {}}), 1);
        assert!(!Arc::ptr_eq(&kept.values(), &kept.values()));
        let pinned = kept.pinned();
        assert!(Arc::ptr_eq(&pinned, &kept.values()) && Arc::ptr_eq(&pinned, &kept.pinned()));
        let recent = Recent::default();
        recent.keep(&kept, &pinned);
        assert!(Arc::ptr_eq(&pinned, &recent.values(&kept)));
        kept.unpin();
        assert!(!Arc::ptr_eq(&pinned, &kept.values()));
    }

    #[test]
    fn a_store_that_ends_lets_go_what_others_share() {
        let (shared, values) = packed(&json!({"metadata": {}}), 1);
        let fork = Recent::default();
        fork.keep(&shared, &values);
        assert!(shared.kept().get().is_some());
        drop(fork);
        assert!(shared.kept().get().is_none());
    }

    #[test]
    fn values_are_kept_up_to_a_bound_the_oldest_go_first() {
        let recent = Recent::default();
        let object = json!({"metadata": {}, "data": "x".repeat(RECENT / 8)});
        let all: Vec<_> = (1..20).map(|revision| packed(&object, revision)).collect();
        for (packed, values) in &all {
            recent.keep(packed, values);
            recent.keep(packed, values);
        }
        let kept: Vec<bool> = all.iter().map(|(packed, _)| packed.kept().get().is_some()).collect();
        assert_eq!(kept.iter().filter(|kept| **kept).count(), 7);
        assert!(kept.ends_with(&[true; 7]), "{kept:?}");
        let (oldest, values) = all.first().unwrap();
        assert_eq!(recent.values(oldest), *values);
        assert!(oldest.kept().get().is_some());
    }
}
