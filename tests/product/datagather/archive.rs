//! What an archive holds: layout, order, limits, obfuscation; read back with an independent reader.

use std::io::Read;
use std::time::Duration;

use admit::gather::archive::{Archive, GATHERS, ProcessFacts};
use admit::gather::collect::{Row, Verdict};
use admit::gather::obfuscate::{Obfuscator, Rules};
use admit::gather::record::Record;
use admit::gather::remote::{self, Remote};
use admit::gather::spool::{Kept, MAX_FILES, MAX_RECORDS, Spool};
use flate2::read::GzDecoder;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::constant(1_763_692_206, 0);

pub(super) struct Entry {
    pub(super) path: String,
    mode: u32,
    mtime: u64,
    pub(super) text: String,
}

fn row(id: &str, verdict: Verdict) -> Row {
    Row { id: id.to_owned(), duration: Duration::from_millis(7), verdict, warnings: Vec::new() }
}

pub(super) fn spool(obfuscator: Option<Obfuscator>) -> Spool {
    Spool::new(tempfile::tempfile().unwrap(), obfuscator)
}

pub(super) fn archive(spool: Spool, rows: &[Row]) -> Archive {
    Archive::new(spool, rows, ProcessFacts::default(), &Remote::default(), NOW).unwrap()
}

pub(super) fn entries(archive: &Archive) -> Vec<Entry> {
    let mut bytes = Vec::new();
    archive.write(&mut bytes).unwrap();
    let mut tar = tar::Archive::new(GzDecoder::new(bytes.as_slice()));
    let read = tar.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let (mode, mtime) = (entry.header().mode().unwrap(), entry.header().mtime().unwrap());
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        Entry { path, mode, mtime, text }
    });
    read.collect()
}

fn gathers(archive: &Archive) -> Value {
    let entries = entries(archive);
    let text = &entries.iter().find(|entry| entry.path == GATHERS).unwrap().text;
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_layout() {
    let earlier = NOW - 90.seconds();
    let node = json!({"kind": "Node", "metadata": {"name": "n", "managedFields": [{}]}});
    let long = format!("config/node/{}", "n".repeat(300));
    let mut spool = spool(None);
    for record in [
        Record::json("config/node/n", node, earlier),
        Record::raw("config/id", "c-1", NOW),
        Record::json(long, json!({}), earlier),
    ] {
        assert_eq!(spool.keep(&record).unwrap(), Kept::New);
    }
    let facts = ProcessFacts { memory_bytes: 4096, uptime: Duration::from_secs(61) };
    let rows = [row("clusterconfig/nodes", Verdict::Gathered { records: 3 })];
    let archive = Archive::new(spool, &rows, facts, &Remote::default(), NOW).unwrap();
    assert_eq!((archive.newest(), archive.records()), (NOW, 3));

    let entries = entries(&archive);
    let paths: Vec<_> = entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(&paths[..4], ["config/id", GATHERS, remote::PATH, "config/node/n.json"]);
    let base = paths[4].rsplit('/').next().unwrap();
    assert!(base.len() == 255 && base.ends_with("n.json"), "{base}");
    assert!(entries.iter().all(|entry| entry.mode == 0o640));
    assert_eq!(entries[0].mtime, 1_763_692_206);
    assert_eq!(entries[3].mtime, 1_763_692_116);
    assert_eq!(entries[3].text, r#"{"kind":"Node","metadata":{"name":"n"}}"#);
    assert_eq!(
        gathers(&archive),
        json!({
            "status_reports": [{
                "name": "clusterconfig/nodes", "duration_in_ms": 7, "records_count": 3,
                "errors": [], "warnings": [], "panic": null,
            }],
            "container_memory_bytes_usage": 4096,
            "uptime_seconds": 61,
            "is_global_obfuscation_enabled": false,
        })
    );
}

#[test]
fn dg_07_gathers_json_is_there_even_when_nothing_else_fits() {
    let mut spool = spool(None);
    let big = Record::raw("config/big", "x".repeat(MAX_RECORDS + 1), NOW);
    let Kept::TooLarge(why) = spool.keep(&big).unwrap() else { panic!("it does not fit") };
    assert!(why.contains("config/big") && why.contains("size limit"), "{why}");
    assert_eq!(spool.keep(&Record::raw("config/small", "x", NOW)).unwrap(), Kept::New);
    let fits = Record::raw("config/rest", "x".repeat(MAX_RECORDS - 1), NOW);
    assert_eq!(spool.keep(&fits).unwrap(), Kept::New);
    assert!(matches!(spool.keep(&Record::raw("config/one", "x", NOW)).unwrap(), Kept::TooLarge(_)));
    let archive = archive(spool, &[row("a/big", Verdict::Failed(why.clone()))]);
    let paths: Vec<_> = entries(&archive).into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["config/rest", "config/small", GATHERS, remote::PATH]);
    assert_eq!(gathers(&archive)["status_reports"][0]["errors"], json!([why]));
}

#[test]
fn records_that_say_nothing_are_bounded_by_their_number() {
    let mut spool = spool(None);
    for n in 0..MAX_FILES {
        assert_eq!(spool.keep(&Record::raw(format!("a/{n}"), "", NOW)).unwrap(), Kept::New);
    }
    let Kept::TooLarge(why) = spool.keep(&Record::raw("b", "", NOW)).unwrap() else { panic!("one too many") };
    assert!(why.contains("beyond the 50000"), "{why}");
}

#[test]
fn a_second_record_of_a_name_overwrites_and_is_told() {
    let record = |text: &str| Record::raw("config/x", text, NOW);
    let twice = |second: &str| {
        let mut spool = spool(None);
        spool.keep(&record("1")).unwrap();
        let kept = spool.keep(&record(second)).unwrap();
        (kept, entries(&archive(spool, &[])).remove(0).text)
    };
    assert_eq!(twice("1"), (Kept::Same("config/x".to_owned()), "1".to_owned()));
    assert_eq!(twice("22"), (Kept::Overwrote("config/x".to_owned()), "22".to_owned()));
}

/// What could not be put on disk makes no archive, however much else could.
#[test]
fn a_disk_that_fails_makes_no_archive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    std::fs::write(&path, "").unwrap();
    let mut spool = Spool::new(std::fs::File::open(&path).unwrap(), None);
    spool.keep(&Record::raw("config/x", "1", NOW)).unwrap_err();
    Archive::new(spool, &[], ProcessFacts::default(), &Remote::default(), NOW).unwrap_err();
}

#[test]
fn obfuscation_reaches_data_names_and_errors() {
    let rules = Rules {
        networks: vec!["10.0.0.0/8".parse().unwrap()],
        base_domains: vec!["corp.example".to_owned()],
        api_hosts: Vec::new(),
    };
    let record =
        Record::json("config/node/n.corp.example", json!({"ip": "10.9.8.7", "cidr": "10.0.0.0/8"}), NOW);
    let mut spool = spool(Some(Obfuscator::new(&rules).unwrap()));
    spool.keep(&record).unwrap();
    let failed = row("a/failed", Verdict::Failed("dial 10.9.8.7".to_owned()));
    let archive = archive(spool, &[row("a/nodes", Verdict::Gathered { records: 1 }), failed]);
    let entries = entries(&archive);
    assert_eq!(entries[0].path, "config/node/n.<CLUSTER_BASE_DOMAIN>.json");
    assert_eq!(entries[0].text, r#"{"ip":"10.0.0.1","cidr":"10.0.0.0/8"}"#);
    assert_eq!(gathers(&archive)["status_reports"][1]["errors"], json!(["dial 10.0.0.1"]));
    assert_eq!(gathers(&archive)["is_global_obfuscation_enabled"], json!(true));
    assert_eq!(archive.translation["10.9.8.7"], "10.0.0.1");
}
