//! Files whose bytes are others than those that were written.

use std::fs;

use admit_apiserver::store::{Expect, RedbBackend, Store};
use redb::{Database, ReadableTable as _, TableDefinition};

use super::{closed_store, key, path, random, state, thing};

/// Bits of the header, of objects, and of the rest.
fn bits(bytes: &[u8], below: &mut impl FnMut(usize) -> usize) -> Vec<usize> {
    const HEADER: usize = 320;
    const FLAGS: usize = 9;
    let texts: Vec<usize> =
        (0..bytes.len() - 700).filter(|at| bytes[*at..].starts_with(b"metadata")).collect();
    let header = (0..HEADER * 8).step_by(if cfg!(debug_assertions) { 11 } else { 1 });
    let mut bits: Vec<usize> = header.collect();
    // The flags, which no checksum covers: which commit is in force, and how it was written.
    bits.extend(FLAGS * 8..(FLAGS + 1) * 8);
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

/// A process that was killed leaves a file that nobody closed. What was acknowledged is never taken for a change that was not
/// written whole: where it is damaged the store is refused, and does not go back.
#[tokio::test]
async fn a_flipped_bit_after_a_kill_is_never_taken_for_data() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Box::new(RedbBackend::open(&path(&folder)).unwrap())).unwrap();
    for n in 0..60 {
        let name = format!("t{n:05}");
        store.put(&key(&name), Expect::Absent, thing(&name, 700)).await.unwrap();
    }
    // At once after the last one is acknowledged.
    let bytes = fs::read(path(&folder)).unwrap();
    drop(store);

    let file = folder.path().join("damaged.redb");
    fs::write(&file, &bytes).unwrap();
    let whole = state(&file).unwrap();
    assert_eq!(whole.1.len(), 60);
    let (mut refused, mut below) = (0, random(0x0ad1_91b1_75ee_d002));
    for bit in bits(&bytes, &mut below) {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, &damaged).unwrap();
        match state(&file) {
            Ok(found) => assert!(found == whole, "bit {bit} changes what is read"),
            Err(message) => {
                assert_eq!(message.lines().count(), 1, "{message}");
                refused += 1;
            }
        }
    }
    eprintln!("flipped bits after a kill: {refused} starts refused");
    assert!(refused > 30, "{refused}");
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
