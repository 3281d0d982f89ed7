//! Topics as files of lines: records that the inventory writes, and tasks read.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::postgres::uuid;

/// Partitions of every topic. Records of one host are in one of them, in their order.
pub(super) const PARTITIONS: usize = 3;

pub(super) fn created(file: &Path, id: u32) {
    let (key, now) = (uuid(id).to_string(), jiff::Timestamp::now().as_millisecond());
    let mut headers = json!({"event_type": "created"});
    // As in the inventory: hosts below 1,000 have an insights id.
    if id < 1000 {
        headers["insights_id"] = json!("x");
    }
    let time = jiff::Timestamp::now().to_string();
    let host = json!({
        "id": key, "display_name": format!("h{id}"), "account": "a", "org_id": "o", "reporter": "r", "insights_id": Value::Null,
        "tags": [{"namespace": "n", "key": "k", "value": "it's \"quoted\""}], "groups": Value::Null,
        "system_profile": {"sap_system": true, "sap_sids": ["H2O"], "secret_of_host": 7}, "per_reporter_staleness": {},
        "updated": time, "created": time, "last_check_in": time, "stale_timestamp": time,
    });
    append(
        file,
        &json!({"key": key, "timestamp": now, "headers": headers, "value": {"type": "created", "host": host}}),
    );
}

pub(super) fn deleted(file: &Path, id: u32) {
    let (key, now) = (uuid(id).to_string(), jiff::Timestamp::now().as_millisecond());
    let headers = json!({"event_type": "delete", "insights_id": "x"});
    append(
        file,
        &json!({"key": key, "timestamp": now, "headers": headers, "value": {"type": "delete", "id": key}}),
    );
}

fn append(file: &Path, record: &Value) {
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    file.write_all(format!("{record}\n").as_bytes()).unwrap();
}

/// The records of a topic so far, by partition.
pub(super) fn read(file: &Path) -> Vec<Vec<Value>> {
    let mut partitions = vec![Vec::new(); PARTITIONS];
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // What is being written has no end yet.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in whole.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let key = record["key"].as_str().unwrap();
        let sum: usize = key.bytes().map(usize::from).sum();
        partitions[sum % PARTITIONS].push(record);
    }
    partitions
}
