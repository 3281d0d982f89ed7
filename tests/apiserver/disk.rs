//! The store and its disk: full and with room again, damaged, of an older version, made by somebody else.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admit_apiserver::Server;
use admit_apiserver::store::{
    Backend, BackendError, Expect, Image, Key, Medium, Opened, Range, Record, RedbBackend, Revision, Store,
    StoreError,
};
use redb::{Database, ReadableTable as _, StorageBackend, TableDefinition};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::harness::{get, post};

const PATIENCE: Duration = Duration::from_mins(1);
const PAGE: u64 = 4096;

fn key(name: &str) -> Key {
    Key { resource: "things".into(), namespace: "here".to_owned(), name: name.to_owned() }
}

fn thing(name: &str, size: usize) -> Value {
    json!({"metadata": {"name": name, "namespace": "here"}, "text": "x".repeat(size)})
}

fn names(store: &Store) -> Vec<String> {
    let page = store.list("things", Range::default(), 0, &mut |_| true).unwrap();
    let name = |value: &Value| value["metadata"]["name"].as_str().unwrap().to_owned();
    page.items.iter().map(|item| name(&item.object.values())).collect()
}

/// Waits until `done`, which another thread brings about.
async fn until(what: &str, done: impl Fn() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !done() {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{what}"));
}

/// A disk in memory with so many pages: as on a real one, a file may be longer than what is written of it.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    bytes: Vec<u8>,
    written: BTreeSet<u64>,
    room: usize,
    opened: usize,
}

impl Disk {
    fn give(&self, room: usize) {
        self.0.lock().unwrap().room = room;
    }

    fn used(&self) -> usize {
        self.0.lock().unwrap().written.len()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        let pages = self.0.lock().unwrap();
        let bytes = pages.bytes.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut pages = self.0.lock().unwrap();
        pages.bytes.resize(usize::try_from(len).unwrap(), 0);
        pages.written.retain(|page| page * PAGE < len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut pages = self.0.lock().unwrap();
        let touched: Vec<u64> = (offset / PAGE..(offset + data.len() as u64).div_ceil(PAGE)).collect();
        let new = touched.iter().filter(|page| !pages.written.contains(page)).count();
        if pages.written.len() + new > pages.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        pages.written.extend(touched);
        let at = usize::try_from(offset).unwrap();
        pages.bytes[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }
}

impl Medium for Disk {
    type Storage = Self;

    fn name(&self) -> String {
        "a disk".to_owned()
    }

    fn open(&self) -> io::Result<Opened<Self>> {
        self.0.lock().unwrap().opened += 1;
        Ok(Opened { storage: self.clone(), fresh: self.len()? == 0 })
    }

    fn publish(&self) -> io::Result<()> {
        Ok(())
    }

    fn room(&self) -> io::Result<()> {
        let pages = self.0.lock().unwrap();
        // A tenth of what the real one asks for: objects are small here.
        if pages.written.len() + 100 > pages.room { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_until_it_has_room_again() {
    let disk = Disk::default();
    disk.give(600);
    let store = Store::open(Box::new(RedbBackend::over(disk.clone()).unwrap())).unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..5 {
        disk.give(disk.used() + 300);
        let failure = loop {
            let name = format!("t{:05}", acknowledged.len());
            match store.put(&key(&name), Expect::Absent, thing(&name, 3000)).await {
                Ok(_) => acknowledged.push(name),
                Err(error) => break error,
            }
        };
        assert!(failure.to_string().starts_with("the store cannot write: "), "{failure}");
        assert_eq!(store.takes_writes(), Some(false), "round {round}");
        // Reads go on, without what was refused; writers build on the same state.
        let next = format!("t{:05}", acknowledged.len());
        assert_eq!(names(&store), acknowledged);
        assert!(store.latest(&key(&next)).is_none());
        let revision = store.revision();
        // What was told and what is expected stays more exact than "no room".
        let taken = store.put(&key(&acknowledged[0]), Expect::Absent, thing("t00000", 1)).await;
        assert!(matches!(taken, Err(StoreError::Conflict(Some(_)))), "{taken:?}");
        for _ in 0..100 {
            let refused = store.put(&key(&next), Expect::Absent, thing(&next, 1)).await;
            assert!(matches!(refused, Err(StoreError::Backend(_))), "{refused:?}");
        }
        assert_eq!((store.revision(), store.takes_writes()), (revision, Some(false)));
        disk.give(disk.used() + 300);
        until("the store does not write again", || store.takes_writes() == Some(true)).await;
        let mut watch = store.watch("things", revision).unwrap();
        let made = store.put(&key(&next), Expect::Absent, thing(&next, 1)).await.unwrap();
        assert!(made.revision > revision);
        let events = watch.drain().unwrap();
        assert_eq!(events.iter().map(|event| event.revision).collect::<Vec<_>>(), [made.revision]);
        acknowledged.push(next);
    }
    assert_eq!(names(&store), acknowledged);
    // Nothing that was refused is on the disk.
    drop(store);
    let again = reopened(&disk).await;
    assert_eq!(names(&again), acknowledged);
}

/// Writes under way together are refused together, and each of them can be made again.
#[tokio::test(flavor = "multi_thread")]
async fn writers_beside_one_another_hear_the_same() {
    let disk = Disk::default();
    disk.give(600);
    let store = Store::open(Box::new(RedbBackend::over(disk.clone()).unwrap())).unwrap();
    disk.give(disk.used() + 200);
    let writers = (0..8).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for n in 0..200 {
                let name = format!("w{writer}-{n}");
                if store.put(&key(&name), Expect::Absent, thing(&name, 4000)).await.is_ok() {
                    acknowledged.push(name);
                }
            }
            acknowledged
        })
    });
    let mut acknowledged = BTreeSet::new();
    for writer in writers.collect::<Vec<_>>() {
        acknowledged.extend(writer.await.unwrap());
    }
    assert_eq!(store.takes_writes(), Some(false));
    assert_eq!(names(&store).into_iter().collect::<BTreeSet<_>>(), acknowledged);
    disk.give(20_000);
    until("the store does not write again", || store.takes_writes() == Some(true)).await;
    for n in 0..200 {
        let name = format!("w0-{n}");
        if !acknowledged.contains(&name) {
            store.put(&key(&name), Expect::Absent, thing(&name, 1)).await.unwrap();
            acknowledged.insert(name);
        }
    }
    drop(store);
    let again = reopened(&disk).await;
    assert_eq!(names(&again).into_iter().collect::<BTreeSet<_>>(), acknowledged);
}

/// The disk as the next process finds it, once the writer of the last has ended.
async fn reopened(disk: &Disk) -> Store {
    until("the store is not closed", || Arc::strong_count(&disk.0) == 1).await;
    Store::open(Box::new(RedbBackend::over(disk.clone()).unwrap())).unwrap()
}

/// Stores a batch, and says that it did not: as when the last sync fails.
#[derive(Default)]
struct Liar {
    stored: Arc<Mutex<Vec<Record>>>,
    lie: bool,
}

impl Backend for Liar {
    fn load(&self) -> Result<Image, BackendError> {
        let stored = self.stored.lock().unwrap();
        Ok(Image { revision: stored.last().map_or(0, |record| record.revision), objects: Vec::new() })
    }

    fn append(&mut self, batch: &[Record]) -> Result<(), BackendError> {
        self.stored.lock().unwrap().extend_from_slice(batch);
        if batch.iter().any(|record| record.key.name == "lie") && std::mem::replace(&mut self.lie, false) {
            return Err(BackendError("nobody knows".to_owned()));
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_and_stored_all_the_same_is_taken_back() {
    let stored = Arc::<Mutex<Vec<Record>>>::default();
    let store = Store::open(Box::new(Liar { stored: stored.clone(), lie: true })).unwrap();
    let kept = store.put(&key("kept"), Expect::Absent, thing("kept", 1)).await.unwrap();
    store.put(&key("lie"), Expect::Absent, thing("lie", 1)).await.unwrap_err();
    until("the store does not write again", || store.takes_writes() == Some(true)).await;
    let records = stored.lock().unwrap().clone();
    let told: Vec<(&str, Revision, bool)> = records
        .iter()
        .map(|record| (record.key.name.as_str(), record.revision, record.object.is_some()))
        .collect();
    let first = kept.revision;
    assert_eq!(told, [("kept", first, true), ("lie", first + 1, true), ("lie", first, false)]);
    assert!(store.latest(&key("lie")).is_none());
    let again = store.put(&key("lie"), Expect::Absent, thing("lie", 1)).await.unwrap();
    assert!(again.revision > first + 1, "no revision stands for two states");
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_names_the_store() {
    let disk = Disk::default();
    disk.give(5000);
    let store = Store::open(Box::new(RedbBackend::over(disk.clone()).unwrap())).unwrap();
    let server = Server::builder().store(store.clone()).build().await.unwrap();
    let ready = async |path: &str| {
        let answer = get(&server, path).await;
        (answer.status, answer.body.as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(ready("/readyz").await.0, 200);
    assert!(ready("/readyz?verbose").await.1.contains("[+]store ok"));
    disk.give(disk.used());
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = |name: &str| json!({"metadata": {"name": name}, "data": {"text": "x".repeat(100_000)}});
    let refused = loop {
        let answer = post(&server, maps, &map(&format!("m{}", store.revision()))).await;
        if answer.status != 201 {
            break answer;
        }
    };
    assert_eq!(refused.status, 500);
    assert!(refused.message().contains("the store cannot write"), "{}", refused.message());
    let (status, text) = ready("/readyz").await;
    assert!(status == 500 && text.contains("[-]store failed"), "{status} {text}");
    assert_eq!(ready("/readyz/store").await.0, 500);
    // Who is alive is not started again for it, and reads go on.
    assert_eq!(ready("/livez").await.0, 200);
    assert_eq!(get(&server, maps).await.status, 200);
    disk.give(20_000);
    until("the store does not write again", || store.takes_writes() == Some(true)).await;
    assert_eq!(ready("/readyz").await.0, 200);
    assert_eq!(post(&server, maps, &map("again")).await.status, 201);
}

/// A store in a folder, closed.
async fn closed_store(objects: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Box::new(RedbBackend::open(&path(&folder)).unwrap())).unwrap();
    for n in 0..objects {
        let name = format!("t{n:05}");
        store.put(&key(&name), Expect::Absent, thing(&name, 700)).await.unwrap();
    }
    drop(store);
    until("the store is not closed", || RedbBackend::open(&path(&folder)).is_ok()).await;
    folder
}

fn path(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("store.redb")
}

/// The state of the store, or the message that it cannot be had.
fn state(path: &Path) -> Result<(Revision, Vec<(String, Value)>), String> {
    let image =
        RedbBackend::open(path).and_then(|backend| backend.load()).map_err(|error| error.to_string())?;
    let objects =
        image.objects.into_iter().map(|(key, stored)| (key.name, (*stored.object.values()).clone()));
    Ok((image.revision, objects.collect()))
}

/// xorshift: numbers below a bound, the same in every run.
fn random(mut state: u64) -> impl FnMut(usize) -> usize {
    move |bound| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).unwrap() % bound
    }
}

/// Bits of the header, of objects, and of the rest.
fn bits(bytes: &[u8], below: &mut impl FnMut(usize) -> usize) -> Vec<usize> {
    const HEADER: usize = 320;
    let texts: Vec<usize> =
        (0..bytes.len() - 700).filter(|at| bytes[*at..].starts_with(b"metadata")).collect();
    let header = (0..HEADER * 8).step_by(if cfg!(debug_assertions) { 11 } else { 1 });
    let mut bits: Vec<usize> = header.collect();
    bits.extend((0..80).map(|_| HEADER * 8 + below((bytes.len() - HEADER) * 8)));
    bits.extend((0..60).map(|_| texts[below(texts.len())] * 8 + below(700 * 8)));
    bits
}

#[tokio::test]
async fn a_flipped_bit_is_never_taken_for_data() {
    let folder = closed_store(120).await;
    let whole = state(&path(&folder)).unwrap();
    let bytes = fs::read(path(&folder)).unwrap();
    let mut below = random(0x0ad1_91b1_75ee_d001);
    let bits = bits(&bytes, &mut below);
    let (mut refused, mut whole_still) = (0, 0);
    let file = folder.path().join("damaged.redb");
    for bit in bits {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, &damaged).unwrap();
        // A second start says what the first did.
        for start in 0..2 {
            match state(&file) {
                Ok(found) => {
                    assert!(
                        found == whole,
                        "start {start}: bit {bit} of {} changes what is read",
                        bytes.len()
                    );
                    whole_still += 1;
                }
                Err(message) => {
                    assert!(message.contains("damaged.redb"), "{message}");
                    assert_eq!(message.lines().count(), 1, "{message}");
                    refused += 1;
                }
            }
        }
    }
    eprintln!("flipped bits: {refused} starts refused, {whole_still} with every object as it was");
    assert!(refused > 60, "{refused}");
}

/// A process that was killed leaves a file that nobody closed. What is damaged in the newest change may then look like a
/// change that was not written whole, and be left out like one, until no more has come for a while.
#[tokio::test]
async fn a_flipped_bit_after_a_kill_is_never_taken_for_data() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Box::new(RedbBackend::open(&path(&folder)).unwrap())).unwrap();
    for n in 0..60 {
        let name = format!("t{n:05}");
        store.put(&key(&name), Expect::Absent, thing(&name, 700)).await.unwrap();
    }
    let at_once = fs::read(path(&folder)).unwrap();
    // The bit of the header that tells a change in two phases.
    let settled = || fs::read(path(&folder)).is_ok_and(|bytes| bytes[9] & 4 != 0);
    until("the newest change is not settled", settled).await;
    let later = fs::read(path(&folder)).unwrap();
    drop(store);

    let file = folder.path().join("damaged.redb");
    fs::write(&file, &later).unwrap();
    let whole = state(&file).unwrap();
    let before = (whole.0 - 1, whole.1[..59].to_vec());
    let mut below = random(0x0ad1_91b1_75ee_d002);
    for (bytes, most_back) in [(at_once, usize::MAX), (later, 0)] {
        let (mut refused, mut back) = (0, 0);
        for bit in bits(&bytes, &mut below) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, &damaged).unwrap();
            match state(&file) {
                Ok(found) if found == whole => {}
                Ok(found) => {
                    assert!(found == before && back < most_back, "bit {bit} changes what is read");
                    back += 1;
                }
                Err(message) => {
                    assert_eq!(message.lines().count(), 1, "{message}");
                    refused += 1;
                }
            }
        }
        eprintln!("flipped bits after a kill: {refused} starts refused, {back} without the newest change");
        assert!(refused > 30, "{refused}");
    }
}

#[tokio::test]
async fn files_that_are_cut_or_overwritten_are_refused_by_name() {
    let folder = closed_store(120).await;
    let bytes = fs::read(path(&folder)).unwrap();
    let whole = state(&path(&folder)).unwrap();
    let file = folder.path().join("damaged.redb");
    let page = 4096;
    let mut cases: Vec<(String, Vec<u8>)> = vec![
        ("empty".to_owned(), Vec::new()),
        ("one byte".to_owned(), bytes[..1].to_vec()),
        ("half".to_owned(), bytes[..bytes.len() / 2].to_vec()),
        ("half, at a page".to_owned(), bytes[..bytes.len() / 2 / page * page].to_vec()),
        ("the header alone".to_owned(), bytes[..page].to_vec()),
        ("one page short".to_owned(), bytes[..bytes.len() - page].to_vec()),
        ("one byte short".to_owned(), bytes[..bytes.len() - 1].to_vec()),
        ("text".to_owned(), b"no database".to_vec()),
        ("zeros".to_owned(), vec![0; bytes.len()]),
        ("no header".to_owned(), [vec![0; page], bytes[page..].to_vec()].concat()),
        ("garbage for a header".to_owned(), [vec![0xa5; 512], bytes[512..].to_vec()].concat()),
        ("one page too many".to_owned(), [bytes.clone(), vec![0; page]].concat()),
    ];
    for at in (page..bytes.len()).step_by(page) {
        let mut block = bytes.clone();
        block[at..(at + page).min(bytes.len())].fill(0x5a);
        if at / page % 8 == 1 || cases.len() < 40 {
            cases.push((format!("page {}", at / page), block));
        }
    }
    let mut refused = 0;
    for (name, bytes) in cases {
        fs::write(&file, &bytes).unwrap();
        for _ in 0..2 {
            match state(&file) {
                // A page that nothing refers to.
                Ok(found) => assert!(found == whole, "{name}"),
                Err(message) => {
                    assert!(message.contains("damaged.redb"), "{name}: {message}");
                    assert_eq!(message.lines().count(), 1, "{name}: {message}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 40, "{refused}");
    fs::write(&file, "").unwrap();
    let message = state(&file).unwrap_err();
    assert!(message.contains("it is empty") && message.contains("delete it"), "{message}");
}

/// What an object holds is compared with its checksum also where every page is as redb wrote it.
#[tokio::test]
async fn an_object_that_is_not_its_own_is_named() {
    const OBJECTS: TableDefinition<'_, (&str, &str, &str), (u32, &[u8])> = TableDefinition::new("objects");
    let folder = closed_store(3).await;
    let database = Database::open(path(&folder)).unwrap();
    let write = database.begin_write().unwrap();
    {
        let mut objects = write.open_table(OBJECTS).unwrap();
        let other = objects.get(("things", "here", "t00001")).unwrap().unwrap();
        let (sum, bytes) = (other.value().0, other.value().1.to_vec());
        drop(other);
        objects.insert(("things", "here", "t00002"), (sum, bytes.as_slice())).unwrap();
    }
    write.commit().unwrap();
    drop(database);
    let message = state(&path(&folder)).unwrap_err();
    let place = "the object at things here/\"t00002\" is damaged: its checksum is another";
    assert!(message.contains("store.redb") && message.contains(place), "{message}");
}

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
