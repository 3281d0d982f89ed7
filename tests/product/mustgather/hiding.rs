//! `obfuscate`: which Job comes of it, what is waited for, what is refused; and what the containers make of a folder.

use std::fs;
use std::process::Command;

use admit::controllers::mustgather::crd::Phase;
use axum::http::Method;
use serde_json::{Value, json};

use super::containers::{Pod, ended};
use super::{Bench, NAMESPACE, condition, container, settings, sftp, variable};
use crate::support::sshd::{PASSWORD, Sshd, Wanted};

fn with_upload(obfuscate: &Value) -> Value {
    let mut spec = sftp(&json!({}));
    spec["obfuscate"] = obfuscate.clone();
    spec
}

async fn rules(bench: &Bench, name: &str, text: &str) {
    let map = json!({"metadata": {"name": name}, "data": {"config.yaml": text}});
    bench.put("", "ConfigMap", "configmaps", NAMESPACE, map).await;
}

#[tokio::test]
async fn what_is_gathered_is_hidden_before_it_is_sent() {
    let bench = Bench::new().await;
    let job = bench.job_of(settings(), with_upload(&json!({"enabled": true}))).await;
    let upload = container(&job, "upload");
    assert_eq!(variable(upload, "obfuscate"), "true");
    assert_eq!(variable(upload, "obfuscation_rules"), json!(null));
    assert_eq!(variable(upload, "must_gather_state"), "/run/must-gather");
    assert_eq!(variable(container(&job, "gather"), "obfuscate"), json!(null));
    let plain = Bench::new().await;
    let job = plain.job_of(settings(), with_upload(&json!({"enabled": false}))).await;
    assert_eq!(variable(container(&job, "upload"), "obfuscate"), json!(null));
}

#[tokio::test]
async fn rules_come_from_a_config_map_in_either_spelling() {
    const RULES: &str = "config: {obfuscate: [{type: MAC}]}";
    for spelling in ["config", "obfuscationConfigRef"] {
        let bench = Bench::new().await;
        bench.start(settings());
        bench.create("sample", with_upload(&json!({"enabled": true, spelling: {"name": "rules"}}))).await;
        let object = bench.until("sample", |status| !status.conditions.is_empty()).await;
        let status = object.status.unwrap();
        let (truth, message) = condition(&status, "ReconcileError");
        assert_eq!(
            (truth, message),
            ("True", "there is no ConfigMap rules with rules of obfuscation: it is waited for")
        );
        rules(&bench, "rules", RULES).await;
        // Whatever else happens to the object makes it look again, as time does.
        bench
            .objects()
            .patch(
                "sample",
                &kube::api::PatchParams::default(),
                &kube::api::Patch::Merge(json!({"spec": {"mustGatherTimeout": "1h"}})),
            )
            .await
            .unwrap();
        bench.phase("sample", Phase::Running).await;
        let job = serde_json::to_value(bench.job("sample").await).unwrap();
        assert_eq!(variable(container(&job, "upload"), "obfuscation_rules"), RULES);
    }
}

#[tokio::test]
async fn rules_that_are_none_fail_the_object_before_anything_is_gathered() {
    let bench = Bench::new().await;
    bench.start(settings());
    rules(&bench, "rules", "config: {obfuscate: [{type: Everything}]}").await;
    bench.create("sample", with_upload(&json!({"enabled": true, "config": {"name": "rules"}}))).await;
    let reason = bench.phase("sample", Phase::Failed).await.reason.unwrap();
    assert!(
        reason.starts_with("Obfuscation validation failed: config.obfuscate[0]: type `Everything`"),
        "{reason}"
    );
    assert!(bench.jobs().get_opt("sample").await.unwrap().is_none());
}

/// What the cluster is called may not be known at the moment, which is not the same as its having no name.
#[tokio::test]
async fn a_cluster_that_does_not_say_its_name_is_asked_again() {
    let bench = Bench::new().await;
    bench.start(settings());
    bench.faults.refuse(Method::GET, "/dnses/cluster", 500, usize::MAX);
    bench.create("sample", with_upload(&json!({"enabled": true}))).await;
    let object = bench.until("sample", |status| !status.conditions.is_empty()).await;
    let status = object.status.unwrap();
    assert!(condition(&status, "ReconcileError").1.contains("cannot read the DNS `cluster`"), "{status:?}");
    assert!(bench.jobs().get_opt("sample").await.unwrap().is_none());
}

#[tokio::test]
async fn what_lies_on_a_volume_is_not_gathered_again() {
    let source = json!({"claim": {"name": "data"}, "subPath": "old/run"});
    for uploads in [false, true] {
        let bench = Bench::new().await;
        let mut spec = if uploads { sftp(&json!({})) } else { json!({}) };
        spec["obfuscate"] = json!({"enabled": true, "source": source});
        let job = bench.job_of(settings(), spec).await;
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(pod["initContainers"].as_array().map_or(0, Vec::len), 0);
        assert_eq!(pod["containers"].as_array().unwrap().len(), 1);
        let name = if uploads { "upload" } else { "obfuscate" };
        let only = container(&job, name);
        assert_eq!(variable(only, "must_gather_state"), json!(null), "nothing is waited for");
        let mounts = only["volumeMounts"].as_array().unwrap();
        let output = mounts.iter().find(|mount| mount["mountPath"] == "/must-gather").unwrap();
        assert_eq!((&output["subPath"], &output["readOnly"]), (&json!("old/run"), &json!(true)));
        assert_eq!(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], "data");
        let rule = &job["spec"]["podFailurePolicy"]["rules"][0];
        assert_eq!(rule["onExitCodes"]["containerName"], name);
        if !uploads {
            let beside = mounts.iter().find(|mount| mount["mountPath"] == "/must-gather-obfuscated").unwrap();
            assert_eq!(beside["subPath"], "old");
            let output = only["args"][2].as_str().unwrap();
            assert!(
                output.starts_with("/must-gather-obfuscated/run.obfuscated.must-gather.local."),
                "{output}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_gathered_to_a_volume_is_kept_beside_it_as_it_may_be_shown() {
    let bench = Bench::new().await;
    let storage = json!({"type": "PersistentVolume", "persistentVolume": {"claim": {"name": "data"}, "subPath": "runs"}});
    let job = bench.job_of(settings(), json!({"obfuscate": {"enabled": true}, "storage": storage})).await;
    let obfuscate = container(&job, "obfuscate");
    assert_eq!(variable(obfuscate, "must_gather_state"), "/run/must-gather");
    let mounts = obfuscate["volumeMounts"].as_array().unwrap();
    assert!(
        mounts
            .iter()
            .any(|mount| mount["mountPath"] == "/must-gather-obfuscated" && mount["subPath"] == "runs")
    );
    assert_eq!(job["spec"]["template"]["spec"]["initContainers"][0]["name"], "program");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let bench = Bench::new().await;
    let source = json!({"claim": {"name": "data"}});
    for (spec, refusal) in [
        (json!({"obfuscate": {"enabled": true}}), "what is obfuscated goes nowhere"),
        (json!({"obfuscate": {"source": source}}), "source needs enabled"),
        (
            json!({"obfuscate": {"enabled": true, "config": {"name": "a"}, "obfuscationConfigRef": {"name": "b"}, "source": source}}),
            "only one of config and obfuscationConfigRef",
        ),
        (
            json!({"obfuscate": {"enabled": true, "source": source}, "gatherSpec": {}}),
            "nothing is gathered where",
        ),
    ] {
        let spec = serde_json::from_value(spec).unwrap();
        let object = admit::controllers::mustgather::crd::MustGather::new("both", spec);
        let error = bench.objects().create(&kube::api::PostParams::default(), &object).await.unwrap_err();
        assert!(error.to_string().contains(refusal), "{error}");
    }
    // Which the definition cannot tell from a folder that is meant.
    bench.start(settings());
    bench.create("root", json!({"obfuscate": {"enabled": true, "source": source}})).await;
    let reason = bench.phase("root", Phase::Failed).await.reason.unwrap();
    assert!(reason.starts_with("obfuscate.source.subPath is needed"), "{reason}");
}

/// From the folder to the file on the server.
#[test]
fn an_upload_shows_nothing_that_is_to_be_hidden() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let pod = Pod::new();
    let script = "mkdir must-gather/img; echo 'to 10.0.0.1 at api.corp.example' > must-gather/img/a.log; \
                  printf 'kind: Secret\\ndata: canary-4717\\n' > must-gather/img/s.yaml; echo said 10.0.0.1";
    assert!(pod.gather("0", script).output().unwrap().status.success());
    let mut upload = pod.upload(&sshd, PASSWORD);
    upload.env("obfuscate", "true").env("obfuscation_domains", "api.corp.example,corp.example");
    let (code, text) = ended(upload.spawn().unwrap());
    assert_eq!(code, 0, "{text}");
    assert!(
        pod.message().contains("; 2 files obfuscated, 3 places replaced, 1 files left out"),
        "{}",
        pod.message()
    );
    let unpacked = pod.path("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let name = &sshd.files()[0];
    let tar = Command::new("tar").arg("-xzf").arg(sshd.home().join(name)).current_dir(&unpacked).status();
    assert!(tar.unwrap().success());
    let read = |path: &str| fs::read_to_string(unpacked.join("must-gather").join(path)).unwrap();
    assert_eq!(read("img/a.log"), "to x-ipv4-0000000001-x at domain0000000001\n");
    assert_eq!(read("must-gather.log"), "said x-ipv4-0000000001-x\n");
    assert!(read("obfuscation.log").contains("left out: img/s.yaml: the rules leave out Secret"));
    let grep = Command::new("grep").args(["-rE", "canary|10\\.0\\.0|corp"]).arg(&unpacked).output().unwrap();
    assert!(grep.stdout.is_empty(), "{}", String::from_utf8_lossy(&grep.stdout));
    // What was gathered stays as it is.
    assert!(fs::read_to_string(pod.path("must-gather/img/a.log")).unwrap().contains("10.0.0.1"));
    assert!(fs::read_dir(pod.path("upload")).unwrap().next().is_none(), "something was left behind");

    // Nothing is sent by rules that are none.
    let mut upload = pod.upload(&sshd, PASSWORD);
    upload.env("obfuscate", "true").env("obfuscation_rules", "config: {omit: [{type: None}]}");
    let (code, text) = ended(upload.spawn().unwrap());
    assert_eq!((code, sshd.files().len()), (2, 1), "{text}");
    assert!(text.contains("config.omit[0]: type `None`"), "{text}");
}

#[test]
fn a_folder_is_copied_as_it_may_be_shown() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.arg("obfuscate").args(args).env_clear().current_dir(dir.path());
        let done = command.output().unwrap();
        (done.status.code().unwrap(), String::from_utf8(done.stderr).unwrap())
    };
    fs::create_dir(dir.path().join("in")).unwrap();
    let (code, text) = run(&["--input", "in", "--output", "out"]);
    assert!(code == 2 && text.contains("the folder is empty"), "{code} {text}");
    fs::write(dir.path().join("in/a"), "10.0.0.1").unwrap();
    fs::write(dir.path().join("rules"), "config: {obfuscate: [{type: IP, replacementType: Consistent}]}")
        .unwrap();
    let (code, text) = run(&["--input", "in", "--output", "out", "--rules", "rules", "--table", "table"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(fs::read_to_string(dir.path().join("out/a")).unwrap(), "x-ipv4-0000000001-x");
    let table: Value = serde_json::from_str(&fs::read_to_string(dir.path().join("table")).unwrap()).unwrap();
    assert_eq!(table, json!({"10.0.0.1": "x-ipv4-0000000001-x"}));
    let (code, text) = run(&["--input", "in", "--output", "out"]);
    assert!(code == 2 && text.contains("`out` is there already"), "{code} {text}");
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "{left:?}");
}
