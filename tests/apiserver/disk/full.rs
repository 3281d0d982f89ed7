//! A disk that has no room any more, and one that lies.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use admit_apiserver::Server;
use admit_apiserver::store::{
    Backend, BackendError, Expect, Image, Medium, Opened, Record, RedbBackend, Revision, Store, StoreError,
};
use redb::StorageBackend;
use serde_json::json;

use super::{key, names, thing, until};
use crate::harness::{get, post};

const PAGE: u64 = 4096;

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
