//! One redb file: the newest state of every object and the revision counter. History is not kept, so a restarted
//! server answers 410 to watches from before.

use std::path::Path;
use std::sync::Arc;

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition, TableError};
use serde_json::Value;

use super::backend::{Backend, BackendError, Image, Record};
use super::{Key, Stored};

/// `RESOURCE \0 NAMESPACE \0 NAME` → the object as JSON.
const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const REVISION: &str = "revision";

pub struct RedbBackend {
    database: Database,
}

impl RedbBackend {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// When it cannot be opened, is not a store, or is in use by another process.
    pub fn open(path: &Path) -> Result<Self, BackendError> {
        let database = Database::create(path)
            .map_err(|error| BackendError(format!("cannot open {}: {error}", path.display())))?;
        Ok(Self { database })
    }
}

impl Backend for RedbBackend {
    fn load(&self) -> Result<Image, BackendError> {
        let read = self.database.begin_read().map_err(failed)?;
        let objects = match read.open_table(OBJECTS) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(Image::default()),
            Err(error) => return Err(failed(error)),
        };
        let mut image = Image::default();
        for entry in objects.iter().map_err(failed)? {
            let (at, bytes) = entry.map_err(failed)?;
            image.objects.push(parsed(at.value(), bytes.value())?);
        }
        let meta = read.open_table(META).map_err(failed)?;
        image.revision = meta.get(REVISION).map_err(failed)?.map_or(0, |revision| revision.value());
        Ok(image)
    }

    fn append(&mut self, batch: &[Record]) -> Result<(), BackendError> {
        let write = self.database.begin_write().map_err(failed)?;
        {
            let mut objects = write.open_table(OBJECTS).map_err(failed)?;
            let mut meta = write.open_table(META).map_err(failed)?;
            for Record { key, revision, object } in batch {
                let at = format!("{}\0{}\0{}", key.resource, key.namespace, key.name);
                match object {
                    Some(object) => {
                        let bytes = serde_json::to_vec(&**object).map_err(failed)?;
                        objects.insert(at.as_str(), bytes.as_slice()).map_err(failed)?;
                    }
                    None => {
                        objects.remove(at.as_str()).map_err(failed)?;
                    }
                }
                meta.insert(REVISION, *revision).map_err(failed)?;
            }
        }
        write.commit().map_err(failed)
    }
}

impl std::fmt::Debug for RedbBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedbBackend").finish_non_exhaustive()
    }
}

fn failed(error: impl std::fmt::Display) -> BackendError {
    BackendError(error.to_string())
}

fn parsed(at: &str, bytes: &[u8]) -> Result<(Key, Stored), BackendError> {
    let mut parts = at.split('\0');
    let (Some(resource), Some(namespace), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(BackendError(format!("the key {at:?} is damaged")));
    };
    let object: Value = serde_json::from_slice(bytes)
        .map_err(|error| BackendError(format!("the object at {at:?} is damaged: {error}")))?;
    let revision = object
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| BackendError(format!("the object at {at:?} has no resourceVersion")))?;
    let key = Key { resource: Arc::from(resource), namespace: namespace.to_owned(), name: name.to_owned() };
    Ok((key, Stored { revision, object: Arc::new(object) }))
}
