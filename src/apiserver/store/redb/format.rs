//! Reads and writes the file format. Keys have three parts, each with its length, so that no key is ambiguous; values
//! have a checksum over key and object, so that an object that was damaged, or is stored under another's key, is
//! never served.
//!
//! In older files a key is one string, `RESOURCE \0 NAMESPACE \0 NAME`, and values have no checksum. The table has the
//! same name and another type, so that an old program refuses a new file instead of finding it empty.

use std::collections::BTreeMap;

use admit_policy::json;
use redb::{
    Database, ReadTransaction, ReadableDatabase as _, ReadableTable as _, TableDefinition, TableError,
    WriteTransaction,
};

use super::failed;
use crate::object;
use crate::store::backend::{BackendError, Image, Record};
use crate::store::{Kept, Key, Packed, Revision};

/// Key of an object: resource, namespace, name.
type At = (&'static str, &'static str, &'static str);

/// Value of an object: the CRC-32 of key and object; the object as JSON.
const OBJECTS: TableDefinition<'_, At, (u32, &[u8])> = TableDefinition::new("objects");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const REVISION: &str = "revision";

/// `RESOURCE \0 NAMESPACE \0 NAME` → the object as JSON.
const OLD_OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");

/// Creates the tables of a new store.
pub(super) fn begin(database: &Database) -> Result<(), BackendError> {
    let mut write = database.begin_write().map_err(failed)?;
    write.set_two_phase_commit(true);
    write.open_table(OBJECTS).map_err(failed)?;
    write.open_table(META).map_err(failed)?.insert(REVISION, 0).map_err(failed)?;
    write.commit().map_err(failed)
}

pub(super) fn load(database: &Database) -> Result<Image, BackendError> {
    let read = database.begin_read().map_err(failed)?;
    let mut image = Image { revision: revision_of(&read)?, objects: Vec::new() };
    for entry in read.open_table(OBJECTS).map_err(failed)?.iter().map_err(failed)? {
        let (at, value) = entry.map_err(failed)?;
        let (resource, namespace, name) = at.value();
        let (sum, bytes) = value.value();
        let damaged =
            |why: &str| BackendError(format!("the object at {} is damaged: {why}", place(at.value())));
        if sum != checksum(at.value(), bytes) {
            return Err(damaged("its checksum is another"));
        }
        let read = Packed::read(bytes).map_err(|error| damaged(&error.to_string()))?;
        let (revision, object) = read.ok_or_else(|| damaged("it has no resourceVersion"))?;
        if revision > image.revision {
            return Err(damaged("it is newer than the store"));
        }
        let key = Key { resource: resource.into(), namespace: namespace.to_owned(), name: name.to_owned() };
        image.objects.push((key, Kept { revision, object }));
    }
    Ok(image)
}

/// Stores `batch` by a two-phase commit: its pages are synced before the header refers to them. After a crash redb rolls back
/// a one-phase commit whose pages do not verify, since they may not all have been written. A two-phase commit is never rolled
/// back; damage to it is an error. So an acknowledged write is never mistaken for an incomplete one. This costs a second sync
/// for each batch: concurrent writers share it, and write two thirds as often as without.
pub(super) fn append(database: &Database, batch: &[Record]) -> Result<(), BackendError> {
    let mut write = database.begin_write().map_err(failed)?;
    write.set_two_phase_commit(true);
    {
        let mut objects = write.open_table(OBJECTS).map_err(failed)?;
        let mut meta = write.open_table(META).map_err(failed)?;
        for Record { key, revision, object } in batch {
            let at = (&*key.resource, key.namespace.as_str(), key.name.as_str());
            match object {
                Some(object) => {
                    let bytes = object.text();
                    objects.insert(at, (checksum(at, bytes), bytes)).map_err(failed)?;
                }
                None => {
                    objects.remove(at).map_err(failed)?;
                }
            }
            meta.insert(REVISION, *revision).map_err(failed)?;
        }
    }
    write.commit().map_err(failed)
}

/// Returns the newest stored revision.
pub(super) fn revision(database: &Database) -> Result<Revision, BackendError> {
    revision_of(&database.begin_read().map_err(failed)?)
}

/// Converts a file of an older version to the current format, in one transaction. Returns how many objects it held.
pub(super) fn update(database: &Database, store: &str) -> Result<Option<usize>, BackendError> {
    match database.begin_read().map_err(failed)?.open_table(OBJECTS) {
        Ok(_) => return Ok(None),
        Err(TableError::TableTypeMismatch { .. }) => {}
        Err(TableError::TableDoesNotExist(_)) => {
            return Err(BackendError("it holds no objects: it is not a store of admit's".to_owned()));
        }
        Err(error) => return Err(failed(error)),
    }
    let mut write = database.begin_write().map_err(failed)?;
    write.set_two_phase_commit(true);
    let entries = old_entries(&write, store)?;
    let number = entries.len();
    write.delete_table(OLD_OBJECTS).map_err(failed)?;
    {
        let mut objects = write.open_table(OBJECTS).map_err(failed)?;
        for ((resource, namespace, name), bytes) in entries {
            let at = (resource.as_str(), namespace.as_str(), name.as_str());
            objects.insert(at, (checksum(at, &bytes), bytes.as_slice())).map_err(failed)?;
        }
    }
    write.commit().map_err(failed)?;
    Ok(Some(number))
}

type Owned = (String, String, String);

/// Reads the objects of an older version, each under its own name.
///
/// Those versions cut a name at its first NUL when they read a file, and so, after a restart, took `a\0b` for `a`: they served
/// it as `a`, and stored it there when it was changed. Such an object is moved to its own name, and an object that is already
/// stored there wins, since it was written under that name.
fn old_entries(write: &WriteTransaction, store: &str) -> Result<BTreeMap<Owned, Vec<u8>>, BackendError> {
    let mut entries = BTreeMap::new();
    let mut misplaced = Vec::new();
    for entry in write.open_table(OLD_OBJECTS).map_err(failed)?.iter().map_err(failed)? {
        let (at, bytes) = entry.map_err(failed)?;
        let damaged = |why: &str| BackendError(format!("the object at {:?} is damaged: {why}", at.value()));
        let mut parts = at.value().splitn(3, '\0');
        let (Some(resource), Some(namespace), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(damaged("its key has not three parts"));
        };
        let object = json::reread(bytes.value()).map_err(|error| damaged(&error.to_string()))?;
        let own = object::name(&object);
        if own == name || own.is_empty() {
            let key = (resource.to_owned(), namespace.to_owned(), name.to_owned());
            entries.insert(key, bytes.value().to_vec());
        } else {
            let key = (resource.to_owned(), namespace.to_owned(), own.to_owned());
            misplaced.push((key, name.to_owned(), bytes.value().to_vec()));
        }
    }
    for ((resource, namespace, own), name, bytes) in misplaced {
        tracing::warn!(
            store, resource, namespace, object = ?own, ?name,
            "an object lay in the place of another, which an older version mistook it for; the other one is lost if it was \
             not stored again"
        );
        entries.entry((resource, namespace, own)).or_insert(bytes);
    }
    Ok(entries)
}

fn revision_of(read: &ReadTransaction) -> Result<Revision, BackendError> {
    let meta = read.open_table(META).map_err(failed)?;
    let revision = meta.get(REVISION).map_err(failed)?;
    revision.map(|revision| revision.value()).ok_or_else(|| BackendError("it has no revision".to_owned()))
}

/// Covers the lengths of the parts too, so that different keys give different input.
fn checksum((resource, namespace, name): (&str, &str, &str), bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for part in [resource.as_bytes(), namespace.as_bytes(), name.as_bytes(), bytes] {
        sum.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        sum.update(part);
    }
    sum.finalize()
}

/// Formats a key for messages.
fn place((resource, namespace, name): (&str, &str, &str)) -> String {
    match namespace {
        "" => format!("{resource} {name:?}"),
        _ => format!("{resource} {namespace}/{name:?}"),
    }
}
