//! Power that fails at any moment: what was acknowledged is there again, and of what was under way all or nothing.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use admit_apiserver::store::{Expect, Medium, Opened, RedbBackend, Store};
use redb::StorageBackend;

use super::{key, names, random, thing};

const WRITES: usize = 60;

/// A disk in memory that forgets what was not synced.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<Bytes>>, Arc<AtomicUsize>);

#[derive(Debug, Default)]
struct Bytes {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// What was written since, in pieces that may reach the disk by themselves, in any order or not at all.
    pending: Vec<(usize, Vec<u8>)>,
    /// What the disk may hold if the power fails now, and how many changes were acknowledged by then.
    failures: Vec<(Vec<u8>, usize)>,
    writes: usize,
}

impl Bytes {
    /// Some of what is pending reaches the disk.
    fn fail(&mut self, acknowledged: usize) {
        let mut below = random(0x0ad1_91b1_75ee_d003 + self.writes as u64);
        let mut bytes = self.synced.clone();
        bytes.resize(self.now.len(), 0);
        for (at, data) in self.pending.iter().filter(|_| below(2) == 0) {
            if let Some(place) = bytes.get_mut(*at..at + data.len()) {
                place.copy_from_slice(data);
            }
        }
        self.failures.push((bytes, acknowledged));
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        let bytes = self.0.lock().unwrap();
        out.copy_from_slice(bytes.now.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().unwrap().now.resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap();
        bytes.fail(self.1.load(Ordering::SeqCst));
        bytes.synced = bytes.now.clone();
        bytes.pending.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        let mut bytes = self.0.lock().unwrap();
        bytes.now[at..at + data.len()].copy_from_slice(data);
        bytes.pending.push((at, data.to_vec()));
        bytes.writes += 1;
        if bytes.writes.is_multiple_of(3) {
            bytes.fail(self.1.load(Ordering::SeqCst));
        }
        Ok(())
    }
}

impl Medium for Disk {
    type Storage = Self;

    fn name(&self) -> String {
        "a disk".to_owned()
    }

    fn open(&self) -> io::Result<Opened<Self>> {
        Ok(Opened { storage: self.clone(), fresh: self.len()? == 0 })
    }

    fn publish(&self) -> io::Result<()> {
        Ok(())
    }

    fn room(&self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_failure_of_power() {
    let disk = Disk::default();
    let store = Store::open(Box::new(RedbBackend::over(disk.clone()).unwrap())).unwrap();
    // A store that is begun has its name only once it is whole: failures count from here.
    disk.0.lock().unwrap().failures.clear();
    for n in 0..WRITES {
        let name = format!("t{n:05}");
        store.put(&key(&name), Expect::Absent, thing(&name, 2_000)).await.unwrap();
        disk.1.store(n + 1, Ordering::SeqCst);
        // What is on the disk by now, without anything that was not synced.
        let mut bytes = disk.0.lock().unwrap();
        let synced = bytes.synced.clone();
        bytes.failures.push((synced, n + 1));
    }
    let failures = std::mem::take(&mut disk.0.lock().unwrap().failures);
    assert!(failures.len() > 3 * WRITES, "{}", failures.len());
    let mut under_way = 0;
    for (number, (bytes, acknowledged)) in failures.into_iter().enumerate() {
        let disk = Disk::default();
        disk.0.lock().unwrap().synced.clone_from(&bytes);
        disk.0.lock().unwrap().now = bytes;
        let opened = RedbBackend::over(disk).unwrap_or_else(|error| panic!("failure {number}: {error}"));
        let found = names(&Store::open(Box::new(opened)).unwrap());
        assert!(
            found.len() == acknowledged || found.len() == acknowledged + 1,
            "failure {number}: {} objects of {acknowledged} that were acknowledged",
            found.len()
        );
        under_way += usize::from(found.len() > acknowledged);
        assert!(found.iter().enumerate().all(|(n, name)| *name == format!("t{n:05}")), "{found:?}");
    }
    eprintln!("failures of power: {under_way} with the change that was under way");
}
