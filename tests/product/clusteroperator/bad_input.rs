//! Payloads that are gone, too large, hostile, or lead elsewhere: told, and nothing else suffers.

use std::fs;

use admit::controllers::clusteroperator::payload::{Inclusion, Source};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::bench::{Bench, manifest};
use super::requests::{passes, until};

#[test]
fn ten_thousand_files_are_a_payload() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..10_000 {
        let text =
            if number % 20 == 0 { manifest(&format!("o{number}")).to_string() } else { "a: 1".to_owned() };
        fs::write(folder.path().join(format!("{number:05}.yaml")), text).unwrap();
    }
    let mut source = Source::new(Some(folder.path()), Inclusion::default());
    let payload = source.read().unwrap();
    assert_eq!((payload.operators.len(), payload.mistakes.len()), (500, 0));
    // Read once: the second time nothing of it is opened.
    let again = source.read().unwrap();
    assert!(std::sync::Arc::ptr_eq(&payload, &again));
}

#[test]
fn files_that_are_none_are_told_each_and_hinder_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("9.json"), manifest("dns").to_string()).unwrap();
    // Nine levels of nine references each.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let inner = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![inner; 9].join(", "));
    }
    fs::write(at("1-bomb.yaml"), bomb).unwrap();
    fs::write(at("2-deep.yaml"), format!("a: {}{}", "[".repeat(100_000), "]".repeat(100_000))).unwrap();
    fs::File::create(at("3-sparse.yaml")).unwrap().set_len(1 << 40).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("4-pipe.yaml")).status().unwrap().success());
    std::os::unix::fs::symlink("/etc/passwd", at("5-outside.yaml")).unwrap();
    std::os::unix::fs::symlink(at("none"), at("6-dangling.yaml")).unwrap();
    fs::create_dir(at("7-folder.yaml")).unwrap();
    fs::write(at("8-bytes.yaml"), [0xff, 0xfe, 0x00]).unwrap();
    let payload = Source::new(Some(folder.path()), Inclusion::default()).read().unwrap();
    let names: Vec<_> = payload.operators.iter().map(|operator| operator.name.as_str()).collect();
    assert_eq!(names, ["dns"]);
    for number in 1..=8 {
        let told = payload.mistakes.iter().any(|mistake| mistake.starts_with(&number.to_string()));
        assert!(told, "{number}: {:#?}", payload.mistakes);
    }
    assert!(payload.mistakes.iter().all(|mistake| !mistake.contains("root:")), "{:#?}", payload.mistakes);
}

/// No mode keeps an administrator out: what cannot be read is what leads in a circle, or is no folder.
#[test]
fn a_payload_that_cannot_be_read_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(at("circle"), at("circle")).unwrap();
    fs::write(at("file"), manifest("dns").to_string()).unwrap();
    for name in ["circle", "file", "file/below", "none"] {
        let error = Source::new(Some(&at(name)), Inclusion::default()).read().unwrap_err().to_string();
        assert!(error.contains(&*at(name).to_string_lossy()), "{name}: {error}");
    }
}

/// What is wrong is told as a Warning, once however many passes see it, and again when it comes back.
#[tokio::test]
async fn what_is_wrong_with_a_payload_is_told_once() {
    let bench = Bench::new().await;
    bench.write("1-broken.yaml", "kind: [");
    std::os::unix::fs::symlink("/etc/passwd", bench.payload.path().join("2-outside.yaml")).unwrap();
    bench.announce("dns");
    let primer = bench.start();
    bench.until_primed("dns").await;
    for round in 0..3 {
        let before = passes(&primer);
        let labelled = Patch::Merge(json!({"metadata": {"labels": {"round": round.to_string()}}}));
        bench.operators().patch("dns", &PatchParams::default(), &labelled).await.unwrap();
        until("another pass", || passes(&primer) > before).await;
    }
    let told = bench.told("BadManifest").await;
    assert_eq!(told.len(), 2, "{told:#?}");
    for (event, file) in told.iter().zip(["1-broken.yaml", "2-outside.yaml"]) {
        assert!(event.note.as_ref().unwrap().starts_with(file), "{told:#?}");
        assert_eq!((event.type_.as_deref(), &event.series), (Some("Warning"), &None));
    }
    let line = "cluster_operator_primed_total{result=\"bad_manifest\"}";
    primer.until_counted(&format!("{line} 2")).await;
    bench.write("1-broken.yaml", &manifest("ingress").to_string());
    bench.operators().delete("dns", &DeleteParams::default()).await.unwrap();
    bench.until_primed("ingress").await;
    bench.until_primed("dns").await;
    bench.write("1-broken.yaml", "kind: [");
    bench.operators().delete("dns", &DeleteParams::default()).await.unwrap();
    primer.until_counted(&format!("{line} 3")).await;
    primer.stop().await;
}

/// A folder that goes is told; what is there stays, and the primer goes on when it is back.
#[tokio::test]
async fn a_payload_that_goes_and_comes_back() {
    let bench = Bench::new().await;
    bench.announce("dns");
    let primer = bench.start();
    let before = bench.until_primed("dns").await;
    let away = bench.payload.path().with_extension("away");
    fs::rename(bench.payload.path(), &away).unwrap();
    // Any event makes it look.
    bench.report("dns", super::bench::available()).await;
    primer.until_counted("cluster_operator_primed_total{result=\"bad_manifest\"} 1").await;
    let there = bench.operators().get("dns").await.unwrap();
    assert_eq!(there.metadata.uid, before.metadata.uid);
    fs::rename(&away, bench.payload.path()).unwrap();
    bench.announce("ingress");
    bench.operators().delete("dns", &DeleteParams::default()).await.unwrap();
    bench.until_primed("ingress").await;
    bench.until_primed("dns").await;
    primer.stop().await;
}
