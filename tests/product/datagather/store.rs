//! The folder of archives: exclusive, complete or absent, pruned, and never two for one owner.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use admit::gather::store::{ArchiveStore, Published, StoreError, file_name};
use jiff::Timestamp;

const NOW: Timestamp = Timestamp::constant(1_763_692_206, 0);

fn publish(store: &ArchiveStore, owner: &str) -> Result<Published, StoreError> {
    store.publish(owner, NOW, |out| out.write_all(owner.as_bytes()))
}

fn visible(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != ".claims").collect();
    names.sort();
    names
}

#[test]
fn an_archive_is_named_by_its_second_and_taken_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = ArchiveStore::open(dir.path()).unwrap();
    let archive = publish(&store, "uid-1").unwrap();
    assert_eq!(archive.name(), "insights-2025-11-21-023006.tar.gz");
    assert_eq!(fs::read(archive.path()).unwrap(), b"uid-1");
    assert_eq!(fs::metadata(archive.path()).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_to_string(dir.path().join(".claims/uid-1")).unwrap(), archive.name());

    // Another gathering of the same second moves on to the next free name.
    assert_eq!(publish(&store, "uid-2").unwrap().name(), "insights-2025-11-21-023007.tar.gz");
    assert_eq!(fs::read(archive.path()).unwrap(), b"uid-1");
    assert_eq!(visible(dir.path()).len(), 2);
}

/// While a service takes nothing, many wait, and each has a name.
#[test]
fn a_hundred_archives_of_one_second_have_names() {
    let dir = tempfile::tempdir().unwrap();
    let store = ArchiveStore::open(dir.path()).unwrap();
    let archives: Vec<_> =
        (0..100).map(|number| publish(&store, &format!("uid-{number}")).unwrap()).collect();
    assert_eq!(visible(dir.path()).len(), 100);
    assert_eq!(archives[99].name(), "insights-2025-11-21-023145.tar.gz");
}

#[test]
fn an_owner_never_has_a_second_archive() {
    let dir = tempfile::tempdir().unwrap();
    let store = ArchiveStore::open(dir.path()).unwrap();
    let archive = publish(&store, "uid-1").unwrap();
    assert!(matches!(publish(&store, "uid-1"), Err(StoreError::AlreadyClaimed)));
    fs::remove_file(archive.path()).unwrap();
    let reopened = ArchiveStore::open(dir.path()).unwrap();
    assert!(matches!(publish(&reopened, "uid-1"), Err(StoreError::AlreadyClaimed)));
    assert_eq!(visible(dir.path()), Vec::<String>::new());
}

/// Each state of the folder that a kill can leave, made by hand: opening it and trying again gives one archive at most.
#[test]
fn every_interrupted_step_leaves_one_archive_at_most() {
    for step in ["partial", "partial and claim", "partial, claim and link", "claim and link"] {
        let dir = tempfile::tempdir().unwrap();
        ArchiveStore::open(dir.path()).unwrap();
        if step.contains("partial") {
            fs::write(dir.path().join(".partial-uid-1"), "half").unwrap();
        }
        if step.contains("claim") {
            fs::write(dir.path().join(".claims/uid-1"), "").unwrap();
        }
        if step.contains("link") {
            fs::write(dir.path().join(file_name(NOW)), "whole").unwrap();
        }
        let store = ArchiveStore::open(dir.path()).unwrap();
        let again = publish(&store, "uid-1");
        assert_eq!(again.is_ok(), !step.contains("claim"), "{step}");
        assert_eq!(visible(dir.path()).len(), usize::from(step != "partial and claim"), "{step}");
    }
}

#[test]
fn a_failed_write_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = ArchiveStore::open(dir.path()).unwrap();
    let failed = store.publish("uid-1", NOW, |out| {
        out.write_all(b"half")?;
        Err(io::Error::other("disk full"))
    });
    assert!(failed.unwrap_err().to_string().contains("disk full"));
    assert_eq!(visible(dir.path()), Vec::<String>::new());
    assert!(publish(&store, "uid-1").is_ok(), "nothing was claimed");
}

#[test]
fn an_owner_is_no_path() {
    let dir = tempfile::tempdir().unwrap();
    let store = ArchiveStore::open(dir.path()).unwrap();
    for owner in ["", "../x", "a/b", "a b", &"u".repeat(129)] {
        assert!(matches!(publish(&store, owner), Err(StoreError::BadOwner(_))), "{owner}");
    }
}

#[test]
fn dg_08_08_pruning_keeps_the_newest_and_what_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let store = ArchiveStore::open(dir.path()).unwrap();
    let oldest = publish(&store, "uid-0").unwrap();
    for n in 1..8 {
        drop(publish(&store, &format!("uid-{n}")).unwrap());
    }
    store.prune(5).unwrap();
    let names = visible(dir.path());
    assert_eq!(names.len(), 6, "five newest and the one in use: {names:?}");
    assert!(names.contains(&oldest.name()));
    drop(oldest);
    store.prune(5).unwrap();
    assert_eq!(visible(dir.path()).len(), 5);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = ArchiveStore::open(file.join("archives")).unwrap_err().to_string();
    assert!(error.contains("file/archives"), "{error}");
}

/// Gathering Jobs may keep archives on one volume: who comes later takes nothing away from who writes.
#[test]
fn what_another_writes_stays_when_the_folder_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let store = ArchiveStore::open(dir.path()).unwrap();
    let published = store.publish("uid-1", NOW, |out| {
        ArchiveStore::open(dir.path()).unwrap();
        out.write_all(b"whole")
    });
    assert_eq!(fs::read(published.unwrap().path()).unwrap(), b"whole");
}
