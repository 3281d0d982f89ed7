//! What an archive holds: layout, order, limits, obfuscation; read back with an independent reader.

use std::io::Read;
use std::time::Duration;

use admit::gather::archive::{Archive, GATHERS, MAX_RECORDS, ProcessFacts};
use admit::gather::collect::{Outcome, Verdict};
use admit::gather::obfuscate::{Obfuscator, Rules};
use admit::gather::record::Record;
use flate2::read::GzDecoder;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::constant(1_763_692_206, 0);

struct Entry {
    path: String,
    mode: u32,
    mtime: u64,
    text: String,
}

fn outcome(id: &str, records: Vec<Record>) -> Outcome {
    let verdict = Verdict::Gathered { records: records.len() };
    Outcome { id: id.to_owned(), duration: Duration::from_millis(7), verdict, records, warnings: Vec::new() }
}

fn entries(archive: &Archive) -> Vec<Entry> {
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
    let records = vec![
        Record::json("config/node/n", node, earlier),
        Record::raw("config/id", "c-1", NOW),
        Record::json(long, json!({}), earlier),
    ];
    let facts = ProcessFacts { memory_bytes: 4096, uptime: Duration::from_secs(61) };
    let archive = Archive::assemble(vec![outcome("clusterconfig/nodes", records)], facts, None, NOW);
    assert_eq!((archive.newest(), archive.records()), (NOW, 3));

    let entries = entries(&archive);
    let paths: Vec<_> = entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(&paths[..3], ["config/id", GATHERS, "config/node/n.json"]);
    let base = paths[3].rsplit('/').next().unwrap();
    assert!(base.len() == 255 && base.ends_with("n.json"), "{base}");
    assert!(entries.iter().all(|entry| entry.mode == 0o640));
    assert_eq!(entries[0].mtime, 1_763_692_206);
    assert_eq!(entries[2].mtime, 1_763_692_116);
    assert_eq!(entries[2].text, r#"{"kind":"Node","metadata":{"name":"n"}}"#);
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
fn gathers_json_is_there_even_when_nothing_else_fits() {
    let big = Record::raw("config/big", "x".repeat(MAX_RECORDS + 1), NOW);
    let small = Record::raw("config/small", "x", NOW);
    let archive =
        Archive::assemble(vec![outcome("a/big", vec![big, small])], ProcessFacts::default(), None, NOW);
    let paths: Vec<_> = entries(&archive).into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["config/small", GATHERS]);
    let Verdict::GatheredWithErrors { records: 1, errors } = &archive.rows[0].verdict else {
        panic!("{:?}", archive.rows)
    };
    assert!(errors[0].contains("config/big") && errors[0].contains("size limit"), "{errors:?}");
    assert_eq!(gathers(&archive)["status_reports"][0]["errors"], json!(errors));
}

#[test]
fn a_second_record_of_a_name_overwrites_and_is_told() {
    let record = |text: &str| Record::raw("config/x", text, NOW);
    let twice = |second: &str| {
        let outcomes = vec![outcome("a/one", vec![record("1")]), outcome("a/two", vec![record(second)])];
        Archive::assemble(outcomes, ProcessFacts::default(), None, NOW)
    };
    let same = twice("1");
    assert!(same.rows[1].warnings[0].contains("same content"));
    assert_eq!(same.rows[1].verdict, Verdict::Gathered { records: 1 });
    let other = twice("2");
    assert!(
        matches!(&other.rows[1].verdict, Verdict::GatheredWithErrors { errors, .. } if errors[0].contains("overwrote"))
    );
    assert_eq!(entries(&other)[0].text, "2");
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
    let mut failed = outcome("a/failed", vec![]);
    failed.verdict = Verdict::Failed("dial 10.9.8.7".to_owned());
    let obfuscator = Obfuscator::new(&rules).unwrap();
    let outcomes = vec![outcome("a/nodes", vec![record]), failed];
    let archive = Archive::assemble(outcomes, ProcessFacts::default(), Some(obfuscator), NOW);
    let entries = entries(&archive);
    assert_eq!(entries[0].path, "config/node/n.<CLUSTER_BASE_DOMAIN>.json");
    assert_eq!(entries[0].text, r#"{"ip":"10.0.0.1","cidr":"10.0.0.0/8"}"#);
    assert_eq!(gathers(&archive)["status_reports"][1]["errors"], json!(["dial 10.0.0.1"]));
    assert_eq!(gathers(&archive)["is_global_obfuscation_enabled"], json!(true));
    assert_eq!(archive.translation["10.9.8.7"], "10.0.0.1");
}
