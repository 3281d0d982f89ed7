//! Row 39: no request and no file of N bytes makes anything grow by more than 64 MiB + 20 × N. One test, because the
//! memory of the whole process is counted.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where and stop")]

#[path = "../../product/support/reliability.rs"]
#[expect(clippy::panic, dead_code, reason = "the table's own tests are in the product's program")]
mod reliability;

mod patterns;
mod stored;

use memory::cluster::{CONFIG_MAPS, Cluster, PATCHES, PODS, THINGS};
use memory::{allowed, bodies, growth, readers};
use reliability::Row;
use serde_json::json;

const SIZES: [usize; 2] = [100 << 10, 2 << 20];

/// The worst so far, and everything that went past the limit.
#[derive(Default)]
struct Seen {
    cases: usize,
    /// In thousandths of what is allowed.
    worst: usize,
    of: String,
    beyond: Vec<String>,
}

impl Seen {
    fn note(&mut self, name: &str, length: usize, grown: usize) {
        self.cases += 1;
        let part = grown * 1_000 / allowed(length);
        let told = format!("{name}: {} KiB took {} MiB, {} %", length >> 10, grown >> 20, part / 10);
        if std::env::var_os("ADMIT_MEMORY_TELLS").is_some() {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "{told}");
        }
        if part > 1_000 {
            self.beyond.push(told.clone());
        }
        if part > self.worst {
            (self.worst, self.of) = (part, told);
        }
    }

    /// What went beyond, a line each.
    fn ends(self, row: &mut Row, what: &str) -> Vec<String> {
        row.measured(json!({
            what: {"cases": self.cases, "worstPercent": self.worst / 10, "worst": self.of, "beyond": self.beyond.len()},
        }));
        self.beyond
    }
}

#[test]
fn row_39_nothing_grows_faster_than_the_bytes() {
    let mut row = Row::short(39, "growth for the worst bodies known, and generated ones");
    let mut seen = Seen::default();
    of_readers(&mut seen);
    let mut beyond = seen.ends(&mut row, "readers");
    let mut seen = Seen::default();
    of_bodies(&mut seen);
    of_changes(&mut seen);
    patterns::of_patterns(&mut seen);
    patterns::of_definitions(&mut seen);
    stored::of_large_objects(&mut seen);
    stored::of_patches(&mut seen);
    stored::of_roles(&mut seen);
    stored::of_mutations(&mut seen);
    beyond.extend(seen.ends(&mut row, "requests"));
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}

fn of_readers(seen: &mut Seen) {
    let mut feed = |bodies: Vec<bodies::Named>, names: &[&str]| {
        for (name, body) in bodies {
            for (reader, read) in readers::ALL.iter().filter(|(reader, _)| names.contains(reader)) {
                let (grown, ()) = growth(|| read(body.as_bytes()));
                seen.note(&format!("{reader}, {name}"), body.len(), grown);
            }
        }
    };
    for size in SIZES {
        feed(bodies::json(size), &["json", "review", "yaml"]);
        feed(bodies::json(size / 4), &["manifest"]);
        feed(bodies::yaml(size), &["yaml", "manifest"]);
        feed(bodies::policies(size / 8), &["policies"]);
    }
    for seed in 1..20 {
        let named = |pieces| vec![("generated", bodies::generated(pieces, seed * 0x9e37_79b9, 20 << 10))];
        feed(named(&bodies::JSON), &["json", "review", "yaml"]);
        feed(named(&bodies::YAML), &["yaml", "manifest", "policies"]);
    }
}

/// Bodies of new objects. Each meets a server of its own, which the growth is of, with what it keeps.
fn of_bodies(seen: &mut Seen) {
    let mut post = |name: &str, path: &str, content_type: &str, body: Vec<u8>| -> u16 {
        let cluster = Cluster::new().unwrap();
        let length = body.len();
        let (grown, (code, _)) = growth(|| cluster.send("POST", path, content_type, body.into()));
        seen.note(&format!("POST {path}, {name}, {code}"), length, grown);
        code
    };
    let config_map = |data: &str| {
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"b\"}},\"data\":{data}}}"
        )
    };
    let thing = |rest: &str| {
        format!(
            "{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{{\"name\":\"b\"}},{rest}}}"
        )
    };
    let pod = |containers: &str| {
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{{\"name\":\"b\"}},\"spec\":{{\"containers\":{containers}}}}}"
        )
    };
    for size in [100 << 10, (3 << 20) - 4_096] {
        for (name, value) in bodies::json(size) {
            post(name, CONFIG_MAPS, "application/json", config_map(&value).into_bytes());
            post(
                name,
                THINGS,
                "application/json",
                thing(&format!("\"spec\":{{\"a\":{value}}}")).into_bytes(),
            );
        }
        post(
            "known maps",
            THINGS,
            "application/json",
            thing(&format!("\"known\":{{\"{}\":{}}}", "k".repeat(size / 2), bodies::named(size / 2, "1")))
                .into_bytes(),
        );
        post(
            "defaulted items",
            THINGS,
            "application/json",
            thing(&format!("\"items\":{}", bodies::list("{}", size))).into_bytes(),
        );
        post("data", CONFIG_MAPS, "application/json", config_map(&bodies::named(size, "\"\"")).into_bytes());
        for (name, body) in bodies::yaml(size) {
            let body = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: b}}\n{body}");
            post(name, CONFIG_MAPS, "application/yaml", body.into_bytes());
        }
        let protobuf = "application/vnd.kubernetes.protobuf";
        post("containers in protobuf", PODS, protobuf, bodies::protobuf_pod(size / 2));
    }
    // What people keep is taken: as much as etcd stores though it is many small fields, and as large as a body may be.
    let item = r#"{"name":"item-000001","address":"10.20.30.40/32","ports":[8080],"note":"of a fleet"}"#;
    let long = format!("{{\"name\":\"item-000001\",\"note\":\"{}\"}}", "of a fleet ".repeat(20));
    for (item, size) in [(item, 1_500 << 10), (&long, (3 << 20) - 4_096)] {
        let body = thing(&format!("\"spec\":{{\"items\":{}}}", bodies::list(item, size))).into_bytes();
        assert_eq!(post("small fields", THINGS, "application/json", body), 201, "{size}");
    }
    let variables =
        (0..1_000).map(|number| format!("{{\"name\":\"VARIABLE_{number}\",\"value\":\"some value\"}}"));
    let env = format!("[{}]", variables.collect::<Vec<_>>().join(","));
    let container = format!(r#"[{{"name":"c","image":"i:1","env":{env}}}]"#);
    assert_eq!(post("variables", PODS, "application/json", pod(&container).into_bytes()), 201);
    // What is refused of more is refused for its errors, which others hold to a limit; fewer are within the limits here.
    for count in [2_000, 20_000, 1_000_000] {
        let containers = bodies::list("{}", count * 3);
        post("containers", PODS, "application/json", pod(&containers).into_bytes());
    }
}

/// Patches of an object that is small.
fn of_changes(seen: &mut Seen) {
    let size = 1 << 20;
    for kind in PATCHES {
        for (name, value) in bodies::json(size) {
            let body = match kind {
                "application/json-patch+json" => {
                    format!("[{{\"op\":\"add\",\"path\":\"/spec\",\"value\":{{\"a\":{value}}}}}]")
                }
                "application/apply-patch+yaml" => {
                    format!(
                        "{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"spec\":{{\"a\":{value}}}}}"
                    )
                }
                _ => format!("{{\"spec\":{{\"a\":{value}}},\"data\":{{\"a\":{value}}}}}"),
            };
            let path = if kind.contains("strategic") { CONFIG_MAPS } else { THINGS };
            let cluster = Cluster::new().unwrap();
            let length = body.len();
            let path = format!("{path}/a?fieldManager=m");
            let (grown, (code, _)) = growth(|| cluster.send("PATCH", &path, kind, body.into()));
            seen.note(&format!("{kind}, {name}, {code}"), length, grown);
        }
    }
}
