//! One test for each behaviour of the sheet.

use std::sync::atomic::Ordering;

use admit::controllers::mustgather::FINALIZER;
use admit::controllers::mustgather::crd::Phase;
use admit::gather::tunnel::Proxies;
use axum::http::Method;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use super::stuck::{Moved, waits};
use super::{Bench, NAMESPACE, complete, condition, container, failed, settings, sftp, variable};

#[tokio::test]
async fn mg_05_without_an_upload_target_the_job_gathers_alone() {
    let bench = Bench::new().await;
    let job = bench.job_of(settings(), json!({})).await;
    assert_eq!(job["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 1);
    assert_eq!(job["spec"]["backoffLimit"], 3);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!((&pod["restartPolicy"], &pod["serviceAccountName"]), (&json!("Never"), &json!("default")));
    assert_eq!(pod["tolerations"][0]["key"], "node-role.kubernetes.io/infra");
    assert_eq!(pod["shareProcessNamespace"], json!(null));
    let object = bench.objects().get("sample").await.unwrap();
    assert_eq!(object.finalizers(), [FINALIZER]);
    assert_eq!(job["metadata"]["ownerReferences"][0]["uid"], json!(object.uid().unwrap()));
    let command = container(&job, "gather")["command"].as_array().unwrap();
    assert_eq!(command[..2], [json!("/run/must-gather/admit"), json!("run-gather")]);
    assert_eq!(command[9..11], [json!("/run/must-gather/admit"), json!("must-gather")]);
}

#[tokio::test]
async fn mg_05_with_an_upload_target_there_are_two_containers() {
    let bench = Bench::new().await;
    let job = bench.job_of(settings(), sftp(&json!({"internalUser": true}))).await;
    let upload = container(&job, "upload");
    assert_eq!((&upload["image"], &upload["args"]), (&json!("example.com/admit:1"), &json!(["upload"])));
    for (name, value) in [
        ("caseid", "04123456"),
        ("host", "sftp.example.com"),
        ("internal_user", "true"),
        ("must_gather_output", "/must-gather"),
        ("must_gather_upload", "/must-gather-upload"),
    ] {
        assert_eq!(variable(upload, name), value, "{name}");
    }
    assert_eq!(variable(upload, "password")["secretKeyRef"]["name"], "account");
    assert!(!job.to_string().contains("canary"), "the password is in the Job");
    assert_eq!(variable(container(&job, "gather"), "password"), json!(null));
}

#[tokio::test]
async fn mg_05_audit_logs_are_gathered_where_asked_for() {
    let bench = Bench::new().await;
    let mut with_image = settings();
    with_image.rules.gather_image = Some("quay.example/must-gather:1".to_owned());
    let job = bench.job_of(with_image, json!({"additionalConfig": {"audit": true}})).await;
    let gather = container(&job, "gather");
    assert_eq!(gather["image"], "quay.example/must-gather:1");
    assert_eq!(gather["command"].as_array().unwrap().last().unwrap(), "/usr/bin/gather_audit_logs");
}

#[tokio::test]
async fn mg_05_a_timeout_is_in_whole_seconds() {
    for (text, seconds) in
        [("10s", "10"), ("10m", "600"), ("10h", "36000"), ("1500ms", "2"), ("1h0m0s", "3600")]
    {
        let bench = Bench::new().await;
        let job = bench.job_of(settings(), json!({"mustGatherTimeout": text})).await;
        let command = container(&job, "gather")["command"].as_array().unwrap().clone();
        let at = command.iter().position(|word| word == "--timeout").unwrap();
        assert_eq!(command[at + 1], seconds, "{text}");
    }
}

#[tokio::test]
async fn mg_05_a_duration_that_is_none_fails_the_object() {
    let bench = Bench::new().await;
    bench.start(settings());
    bench.create("sample", json!({"mustGatherTimeout": "1d"})).await;
    let status = bench.phase("sample", Phase::Failed).await;
    assert!(status.reason.unwrap().contains("`1d` is not a duration"));
    // It stalls nobody else.
    bench.create("other", json!({})).await;
    bench.phase("other", Phase::Running).await;
}

fn with_environment() -> admit::controllers::mustgather::Settings {
    let mut settings = settings();
    settings.rules.environment = Proxies {
        http: "http://env:1".to_owned(),
        https: "https://env:2".to_owned(),
        none: "env.test".to_owned(),
    };
    settings
}

#[tokio::test]
async fn mg_05_proxies_come_from_the_object_first() {
    let bench = Bench::new().await;
    let proxies = json!({"httpProxy": "http://own:1", "httpsProxy": "https://own:2", "noProxy": "own.test"});
    let mut spec = sftp(&json!({}));
    spec["proxyConfig"] = proxies;
    let job = bench.job_of(with_environment(), spec).await;
    for name in ["gather", "upload"] {
        assert_eq!(variable(container(&job, name), "https_proxy"), "https://own:2");
        assert_eq!(variable(container(&job, name), "http_proxy"), "http://own:1");
        assert_eq!(variable(container(&job, name), "no_proxy"), "own.test");
    }
    assert_eq!(variable(container(&job, "gather"), "HTTPS_PROXY"), "https://own:2");
}

#[tokio::test]
async fn mg_05_proxies_come_from_the_operator_last() {
    let bench = Bench::new().await;
    let job = bench.job_of(with_environment(), sftp(&json!({}))).await;
    assert_eq!(variable(container(&job, "upload"), "https_proxy"), "https://env:2");
    assert_eq!(variable(container(&job, "upload"), "no_proxy"), "env.test");
}

#[tokio::test]
async fn mg_05_only_no_proxy_in_the_object_wins_alone() {
    let bench = Bench::new().await;
    let mut spec = sftp(&json!({}));
    spec["proxyConfig"] = json!({"noProxy": "own.test"});
    let job = bench.job_of(with_environment(), spec).await;
    assert_eq!(variable(container(&job, "upload"), "no_proxy"), "own.test");
    assert_eq!(variable(container(&job, "upload"), "https_proxy"), "https://env:2");
}

#[tokio::test]
async fn mg_05_an_active_job_is_running() {
    let bench = Bench::new().await;
    bench.job_of(settings(), json!({})).await;
    bench.job_status("sample", json!({"active": 1, "startTime": "2026-01-01T00:00:00Z"})).await;
    let status = bench.phase("sample", Phase::Running).await;
    assert_eq!(condition(&status, "ReconcileSuccess"), ("True", ""));
    assert_eq!(condition(&status, "ReconcileError"), ("False", ""));
}

#[tokio::test]
async fn mg_05_a_job_that_succeeded_is_completed_and_cleaned_up() {
    let bench = Bench::new().await;
    bench.job_of(settings(), json!({})).await;
    let pods = bench.pod_of(&bench.job("sample").await, "sample-1").await;
    bench.job_status("sample", complete()).await;
    let status = bench.phase("sample", Phase::Completed).await;
    assert_eq!(status.reason.as_deref(), Some("MustGather Job pods succeeded"));
    bench.gone(pods, "sample-1").await;
    bench.gone(bench.jobs(), "sample").await;
    assert_eq!(bench.counts.counted(), (1, 0));
}

#[tokio::test]
async fn mg_05_what_is_retained_stays() {
    let bench = Bench::new().await;
    bench.job_of(settings(), json!({"retainResourcesOnCompletion": true})).await;
    bench.job_status("sample", complete()).await;
    bench.phase("sample", Phase::Completed).await;
    // Whoever would clean up would have done so before it turns to the next.
    bench.create("next", json!({})).await;
    bench.phase("next", Phase::Running).await;
    assert!(bench.jobs().get_opt("sample").await.unwrap().is_some());
}

#[tokio::test]
async fn mg_05_a_job_that_failed_four_times_fails_the_object_once() {
    let bench = Bench::new().await;
    bench.job_of(settings(), json!({})).await;
    bench.job_status("sample", failed()).await;
    let status = bench.phase("sample", Phase::Failed).await;
    assert_eq!(
        status.reason.as_deref(),
        Some("MustGather Job pods failed: BackoffLimitExceeded: Job has reached the limit")
    );
    bench.gone(bench.jobs(), "sample").await;
    assert_eq!(bench.counts.counted(), (1, 1));
}

#[tokio::test]
async fn mg_05_a_job_that_failed_once_is_still_running() {
    let bench = Bench::new().await;
    bench.job_of(settings(), json!({})).await;
    bench.job_status("sample", json!({"failed": 1, "startTime": "2026-01-01T00:00:00Z"})).await;
    bench.create("next", json!({})).await;
    bench.phase("next", Phase::Running).await;
    bench.phase("sample", Phase::Running).await;
}

#[tokio::test]
async fn mg_05_a_secret_that_is_missing_is_waited_for() {
    let bench = Bench::new().await;
    bench.start(settings());
    bench.create("sample", sftp(&json!({"caseManagementAccountSecretRef": {"name": "late"}}))).await;
    let object = bench.until("sample", |status| !status.conditions.is_empty()).await;
    let status = object.status.unwrap();
    assert_eq!((status.status, status.completed), (None, false));
    assert_eq!(condition(&status, "ReconcileError"), ("True", "there is no Secret late: it is waited for"));
    assert!(bench.jobs().get_opt("sample").await.unwrap().is_none());
    bench.secret(NAMESPACE, "late", json!({"username": "eve", "password": "canary-4713"})).await;
    let status = bench.phase("sample", Phase::Running).await;
    assert_eq!(condition(&status, "ReconcileError"), ("False", ""));
    assert_eq!(condition(&status, "ReconcileSuccess"), ("True", ""));
}

#[tokio::test]
async fn mg_05_a_secret_without_a_password_or_user_fails_the_object() {
    let bench = Bench::new().await;
    bench.start(settings());
    bench.secret(NAMESPACE, "no-password", json!({"username": "eve"})).await;
    bench.secret(NAMESPACE, "no-user", json!({"username": "", "password": "canary-4713"})).await;
    for (name, key) in [("no-password", "password"), ("no-user", "username")] {
        bench.create(name, sftp(&json!({"caseManagementAccountSecretRef": {"name": name}}))).await;
        let reason = bench.phase(name, Phase::Failed).await.reason.unwrap();
        assert_eq!(reason, format!("Secret validation failed: Secret {name} has no {key}, or an empty one"));
        assert!(bench.jobs().get_opt(name).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn mg_05_an_account_that_is_missing_fails_the_object() {
    let bench = Bench::new().await;
    bench.start(settings());
    bench.create("sample", json!({"serviceAccountRef": {"name": "absent"}})).await;
    let reason = bench.phase("sample", Phase::Failed).await.reason.unwrap();
    assert_eq!(reason, "Service Account validation failed: there is no ServiceAccount absent");
}

#[tokio::test]
async fn mg_05_a_job_of_somebody_else_is_left_alone() {
    let bench = Bench::new().await;
    let container = json!({"name": "c", "image": "i"});
    let job = json!({
        "metadata": {"name": "sample"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    });
    bench.put("batch", "Job", "jobs", NAMESPACE, job).await;
    bench.start(settings());
    bench.create("sample", json!({})).await;
    let reason = bench.phase("sample", Phase::Failed).await.reason.unwrap();
    assert_eq!(reason, "a Job support/sample exists that is not of this MustGather");
    bench.objects().delete("sample", &DeleteParams::default()).await.unwrap();
    bench.gone(bench.objects(), "sample").await;
    assert!(bench.jobs().get_opt("sample").await.unwrap().is_some());
}

#[tokio::test]
async fn mg_05_a_pod_that_cannot_be_deleted_keeps_the_finalizer() {
    let bench = Bench::new().await;
    bench.job_of(settings(), json!({})).await;
    let pods = bench.pod_of(&bench.job("sample").await, "sample-1").await;
    let left = bench.faults.refuse(Method::DELETE, "/pods/sample-1", 500, 2);
    bench.objects().delete("sample", &DeleteParams::default()).await.unwrap();
    bench.gone(bench.objects(), "sample").await;
    assert_eq!(left.load(Ordering::SeqCst), 0, "the object went before its Pod could be deleted");
    bench.gone(pods, "sample-1").await;
    bench.gone(bench.jobs(), "sample").await;
}

#[tokio::test]
async fn mg_05_deletion_takes_job_and_pods_along_unless_retained() {
    for retain in [false, true] {
        let bench = Bench::new().await;
        bench.job_of(settings(), json!({"retainResourcesOnCompletion": retain})).await;
        let pods = bench.pod_of(&bench.job("sample").await, "sample-1").await;
        bench.objects().delete("sample", &DeleteParams::default()).await.unwrap();
        bench.gone(bench.objects(), "sample").await;
        assert_eq!(bench.jobs().get_opt("sample").await.unwrap().is_some(), retain);
        assert_eq!(pods.get_opt("sample-1").await.unwrap().is_some(), retain);
        // What is retained is nobody's any more: else the collection of garbage would take it.
        if retain {
            assert!(bench.job("sample").await.owner_references().is_empty());
        }
    }
}

#[tokio::test]
async fn mg_05_two_runs_on_one_volume_have_folders_of_their_own() {
    let bench = Bench::new().await;
    bench.start(settings());
    let storage = json!({"type": "PersistentVolume", "persistentVolume": {"claim": {"name": "data"}, "subPath": "runs"}});
    let mut paths = Vec::new();
    for name in ["one", "two"] {
        bench.create(name, json!({"storage": storage})).await;
        let job = serde_json::to_value(bench.job(name).await).unwrap();
        let volume = &job["spec"]["template"]["spec"]["volumes"][0];
        assert_eq!(volume["persistentVolumeClaim"]["claimName"], "data");
        paths.push(container(&job, "gather")["volumeMounts"][0]["subPath"].as_str().unwrap().to_owned());
    }
    assert!(paths.iter().all(|path| path.starts_with("runs/must-gather.local.")), "{paths:?}");
    assert_ne!(paths[0], paths[1]);
}

#[tokio::test]
async fn mg_05_a_conflict_of_status_writes_counts_nothing_twice() {
    let bench = Bench::new().await;
    let left = bench.faults.refuse(Method::PATCH, "/mustgathers/sample/status", 409, 2);
    bench.job_of(settings(), json!({})).await;
    assert_eq!(left.load(Ordering::SeqCst), 0);
    bench.faults.refuse(Method::PATCH, "/mustgathers/sample/status", 409, 2);
    bench.job_status("sample", failed()).await;
    bench.phase("sample", Phase::Failed).await;
    bench.gone(bench.jobs(), "sample").await;
    assert_eq!(bench.counts.counted(), (1, 1));
}

#[tokio::test]
async fn mg_05_an_operator_that_restarts_runs_nothing_a_second_time() {
    let bench = Bench::new().await;
    let first = bench.start(settings());
    bench.create("sample", json!({})).await;
    bench.job("sample").await;
    bench.job_status("sample", complete()).await;
    bench.phase("sample", Phase::Completed).await;
    bench.gone(bench.jobs(), "sample").await;
    first.cancel();
    bench.start(settings());
    let edit = Patch::Merge(
        json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"additionalConfig": {"audit": true}}}),
    );
    bench.objects().patch("sample", &PatchParams::default(), &edit).await.unwrap();
    bench.create("next", json!({})).await;
    bench.phase("next", Phase::Running).await;
    bench.phase("sample", Phase::Completed).await;
    let jobs = bench.jobs().list(&ListParams::default()).await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.name_any()).collect::<Vec<_>>(), ["next"]);
    assert_eq!(bench.counts.counted(), (2, 0));
}

#[tokio::test]
async fn mg_05_a_job_that_is_deleted_fails_the_object() {
    let bench = Bench::new().await;
    bench.job_of(settings(), json!({})).await;
    bench.jobs().delete("sample", &DeleteParams::background()).await.unwrap();
    let reason = bench.phase("sample", Phase::Failed).await.reason.unwrap();
    assert_eq!(reason, "the Job was deleted before it ended");
    bench.counted(1, 1).await;
}

/// Ours: upstream uploads what such a gathering left. That nothing is sent, `mg_06_1` has with the containers themselves.
#[tokio::test]
async fn mg_05_a_gathering_that_fails_with_an_upload_configured_fails_the_object() {
    let bench = Bench::new().await;
    let job = bench.job_of(settings(), sftp(&json!({}))).await;
    // The container that uploads ends with a code that no further Pod is made for.
    let rule = &job["spec"]["podFailurePolicy"]["rules"][0];
    assert_eq!((&rule["action"], &rule["onExitCodes"]["values"]), (&json!("FailJob"), &json!([2, 4])));
    bench.job_status("sample", failed()).await;
    let status = bench.phase("sample", Phase::Failed).await;
    assert!(status.reason.is_some_and(|reason| !reason.is_empty()));
    bench.counted(1, 1).await;
}

/// Ours: upstream uploads nothing and says so of nothing. That the upload waits, `mg_06_2` has with the containers themselves.
#[tokio::test]
async fn mg_05_an_image_that_is_pulled_for_five_minutes_is_waited_for() {
    let bench = Bench::new().await;
    let clock = Moved::default();
    bench.job_of(clock.settings(), sftp(&json!({}))).await;
    waits(&bench, "sample", "ContainerCreating", "").await;
    for _ in 0..5 {
        clock.by(60);
        // Whatever happens to the Pod has it looked at.
        waits(&bench, "sample", "ContainerCreating", &format!("{clock:?}")).await;
        bench.create(&format!("beside-{}", clock.seconds()), json!({})).await;
        bench.phase(&format!("beside-{}", clock.seconds()), Phase::Running).await;
        bench.phase("sample", Phase::Running).await;
    }
    bench.job_status("sample", complete()).await;
    bench.phase("sample", Phase::Completed).await;
}
