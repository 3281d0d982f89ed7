//! New stores, and those of older versions.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use admit_apiserver::store::{Backend as _, RedbBackend, Revision};
use redb::{Database, TableDefinition};
use serde_json::{Value, json};

use super::{path, state};

#[test]
fn a_new_store_is_for_its_owner_and_whole_before_it_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("store.redb.new");
    fs::write(&left, "left by a process that was killed").unwrap();
    drop(RedbBackend::open(&path(&folder)).unwrap());
    assert!(!left.exists());
    let mode = fs::metadata(path(&folder)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(state(&path(&folder)).unwrap().1.is_empty());
    let held = RedbBackend::open(&path(&folder)).unwrap();
    let message = RedbBackend::open(&path(&folder)).unwrap_err().to_string();
    assert!(message.contains("already open"), "{message}");
    drop(held);
    // A database of somebody else's is no empty cluster.
    let other = folder.path().join("other.redb");
    drop(Database::create(&other).unwrap());
    let message = state(&other).unwrap_err();
    assert!(message.contains("not a store of admit's"), "{message}");
}

/// As versions before this one wrote it.
fn old_store(path: &Path, entries: &[(&str, Value)]) {
    const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
    const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
    let database = Database::create(path).unwrap();
    let write = database.begin_write().unwrap();
    {
        let mut objects = write.open_table(OBJECTS).unwrap();
        for (at, object) in entries {
            objects.insert(*at, object.to_string().as_bytes()).unwrap();
        }
        write.open_table(META).unwrap().insert("revision", 90).unwrap();
    }
    write.commit().unwrap();
}

#[test]
fn a_store_of_an_older_version_comes_up_as_it_was_meant() {
    let object = |name: &str, version: u64| json!({"metadata": {"name": name, "resourceVersion": version.to_string()}});
    let folder = tempfile::tempdir().unwrap();
    old_store(
        &path(&folder),
        &[
            ("configmaps\0default\0plain", object("plain", 3)),
            ("namespaces\0\0default", object("default", 2)),
            // Two that the older version confused, neither of them changed since.
            ("rbac/roles\0victim\0prod", object("prod", 4)),
            ("rbac/roles\0victim\0prod\0x", object("prod\0x", 5)),
            // One that was changed in the place of the other.
            ("rbac/roles\0\0admin", object("admin\0x", 9)),
            ("rbac/roles\0\0admin\0x", object("admin\0x", 6)),
            // One whose own place was cleared meanwhile.
            ("rbac/roles\0\0lost", object("lost\0\0y", 8)),
        ],
    );
    let expected = [
        ("configmaps", "default", "plain", 3),
        ("namespaces", "", "default", 2),
        ("rbac/roles", "", "admin\0x", 6),
        ("rbac/roles", "", "lost\0\0y", 8),
        ("rbac/roles", "victim", "prod", 4),
        ("rbac/roles", "victim", "prod\0x", 5),
    ];
    for start in 0..2 {
        let image = RedbBackend::open(&path(&folder)).unwrap().load().unwrap();
        assert_eq!(image.revision, 90);
        let mut found: Vec<(String, String, String, Revision)> = image
            .objects
            .iter()
            .map(|(key, stored)| {
                assert_eq!(stored.object.values()["metadata"]["name"], key.name, "start {start}");
                (key.resource.to_string(), key.namespace.clone(), key.name.clone(), stored.revision)
            })
            .collect();
        found.sort();
        let expected =
            expected.map(|(resource, space, name, at)| (resource.into(), space.into(), name.into(), at));
        assert_eq!(found, expected, "start {start}");
    }
}
