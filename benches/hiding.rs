//! How fast must-gathers are obfuscated, by the rules that count where nobody gives others: one line for each kind of text with the
//! target; ends with 1 where one is missed. `scripts/bench-gathers hiding` runs it.

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use admit::gather::obfuscate::replace::Replacer;
use admit::gather::obfuscate::rules::Ruleset;

const MB: usize = 1_000_000;
/// Of each kind.
const SIZE: usize = 100 * MB;
/// What is gone through at once, as archives are.
const CHUNK: usize = MB;
/// Megabytes a second.
const TARGET: u128 = 100;

/// A line of a log, with its number.
type Line = fn(usize) -> String;

const TEXTS: [(&str, Line); 7] = [
    ("log", |n| {
        format!(
            "2026-11-23T05:{:02}:{:02}.{:06}Z I1123 05:17:09.123456 1 controller.go:{n}] \"Reconciling\" object=\"openshift-dns/dns-default-{n}\" duration=\"1.{n}ms\"\n",
            n / 60 % 60,
            n % 60,
            n % 1_000_000
        )
    }),
    ("access", |n| {
        format!(
            "10.128.{}.{} - - [23/Nov/2026:05:17:09 +0000] \"GET /api/v1/pods HTTP/2.0\" 200 {n} \"-\" \"curl/8.5.0\" console.apps.corp.example\n",
            n / 250 % 250,
            n % 250
        )
    }),
    ("yaml", |n| {
        format!(
            "  - apiVersion: v1\n    kind: Pod\n    metadata:\n      name: pod-{n}\n      uid: 6f1c{:04x}-0a1b-4c2d-9e3f-0123456789ab\n      resourceVersion: \"{n}\"\n",
            n % 65_536
        )
    }),
    ("json", |n| {
        format!(
            "{{\"kind\":\"Event\",\"metadata\":{{\"name\":\"e{n}\"}},\"count\":{n},\"reason\":\"BackOff\",\"message\":\"Back-off pulling image\"}}\n"
        )
    }),
    ("base64", |_| format!("{}\n", "MIIDSjCCAjKgAwIBAgIIV1".repeat(6))),
    ("hex", |n| format!("{n:08x} {}\n", "de ad be ef 00 11 22 33 ".repeat(5))),
    ("fingerprints", |n| {
        format!(
            "AA:BB:CC:{:02X}:EE:FF:00:11:22:33:44:55:66:77:88:99 fe80::{:x} 52:54:00:5e:ee:c6\n",
            n % 256,
            n % 65_536
        )
    }),
];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let mut code = ExitCode::SUCCESS;
    for (name, line) in TEXTS {
        let domains = ["corp.example".to_owned(), "api.corp.example".to_owned()];
        let mut replacer = Replacer::new(&Ruleset::usual().replace, &domains)?;
        let mut text = Vec::with_capacity(CHUNK);
        for n in 0.. {
            if text.len() >= CHUNK {
                break;
            }
            text.extend_from_slice(line(n).as_bytes());
        }
        let (began, mut done) = (Instant::now(), 0);
        while done < SIZE {
            done += text.len();
            std::hint::black_box(replacer.contents(text.clone()));
        }
        let rate = done as u128 * 1_000 / began.elapsed().as_millis().max(1) / MB as u128;
        let verdict = if rate >= TARGET { "met" } else { "MISSED" };
        if rate < TARGET {
            code = ExitCode::FAILURE;
        }
        writeln!(out, "figure: hiding of {name}: {rate} MB/s (target: at least {TARGET}, {verdict})")?;
    }
    Ok(code)
}
