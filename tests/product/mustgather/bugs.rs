//! One test for each bug that the sheet knows of others, where the controller or the Job that it makes could have it too. Those of
//! the containers are in `containers`, those of proxies and host keys in `sftp`.

use std::sync::atomic::Ordering;

use admit::controllers::mustgather::crd::Phase;
use axum::http::Method;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::{Bench, NAMESPACE, complete, container, failed, settings, sftp, variable};
use crate::support::sshd::{PASSWORD, Sshd, USER, Wanted};

/// 4: copies of Secrets collided, and the clean-up of one run took the other's.
#[tokio::test]
async fn mg_06_4_copies_of_secrets_do_not_collide() {
    let bench = Bench::new().await;
    let mut central = settings();
    central.rules.job_namespace = Some("operator".to_owned());
    bench.start(central);
    for namespace in [NAMESPACE, "elsewhere"] {
        bench.create_in(namespace, "sample", sftp(&json!({}))).await;
    }
    let jobs: Api<Job> = Api::namespaced(bench.client.clone(), "operator");
    bench.phase("sample", Phase::Running).await;
    let all = async {
        loop {
            let all = jobs.list(&ListParams::default()).await.unwrap().items;
            if all.len() == 2 {
                return all;
            }
            tokio::task::yield_now().await;
        }
    };
    let all = tokio::time::timeout(crate::support::cluster::PATIENCE, all).await.unwrap();
    let secret_of = |job: &Job| {
        let job = serde_json::to_value(job).unwrap();
        variable(container(&job, "upload"), "password")["secretKeyRef"]["name"].as_str().unwrap().to_owned()
    };
    let (one, two) = (secret_of(&all[0]), secret_of(&all[1]));
    assert_ne!(one, two);
    assert!(jobs.get("sample").await.is_err(), "both have the name");
    for job in &all {
        let copy = bench.secrets("operator").get(&secret_of(job)).await.unwrap();
        assert_eq!(copy.data.unwrap()["username"].0, b"eve");
    }
    // The end of one takes its own copy along.
    let uid = bench.objects().get("sample").await.unwrap().metadata.uid.unwrap();
    let patch = Patch::Merge(json!({"status": complete()}));
    jobs.patch_status(&format!("must-gather-{uid}"), &PatchParams::default(), &patch).await.unwrap();
    bench.phase("sample", Phase::Completed).await;
    bench.gone(bench.secrets("operator"), &format!("{uid}-creds")).await;
    let other = if one.starts_with(&uid) { two } else { one };
    assert!(bench.secrets("operator").get_opt(&other).await.unwrap().is_some());
    // The Secret of the user is not touched.
    assert!(bench.secrets(NAMESPACE).get_opt("account").await.unwrap().is_some());
}

/// 6: completed without a status. 7: the error was counted again each time a clean-up failed.
#[tokio::test]
async fn mg_06_7_a_failure_is_counted_once_while_cleaning_up_fails() {
    let bench = Bench::new().await;
    bench.job_of(settings(), json!({})).await;
    let left = bench.faults.refuse(Method::DELETE, "/jobs/sample", 500, 3);
    bench.job_status("sample", failed()).await;
    let status = bench.phase("sample", Phase::Failed).await;
    assert_eq!((status.status, status.completed), (Some(Phase::Failed), true));
    bench.gone(bench.jobs(), "sample").await;
    assert_eq!(left.load(Ordering::SeqCst), 0);
    assert_eq!(bench.counts.counted(), (1, 1));
}

/// 8: a name that no label of a Pod can have.
#[tokio::test]
async fn mg_06_8_a_name_longer_than_that_of_a_job_fails_the_object() {
    let bench = Bench::new().await;
    bench.start(settings());
    let name = "a".repeat(64);
    bench.create(&name, json!({})).await;
    let reason = bench.phase(&name, Phase::Failed).await.reason.unwrap();
    assert_eq!(reason, "the name has 64 characters, and a Job of it at most 63");
    let fits = "b".repeat(63);
    bench.create(&fits, json!({})).await;
    bench.phase(&fits, Phase::Running).await;
}

/// 9 and the look at the server before anything is gathered: its words are those of the reason.
#[tokio::test]
async fn mg_06_9_the_server_is_looked_at_before_anything_is_gathered() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let bench = Bench::new().await;
    let mut looking = settings();
    looking.rules.preflight = true;
    bench.start(looking);
    let known = sshd.known_hosts();
    for (name, password, known, expected) in [
        ("well", PASSWORD, known.as_str(), None),
        (
            "wrong",
            "canary-wrong",
            known.as_str(),
            Some("Authentication failed: username or password is incorrect"),
        ),
        ("unknown", PASSWORD, "", Some("known_hosts has no key of [127.0.0.1]")),
    ] {
        bench
            .secret(NAMESPACE, name, json!({"username": USER, "password": password, "known_hosts": known}))
            .await;
        let secret =
            json!({"host": sshd.address.to_string(), "caseManagementAccountSecretRef": {"name": name}});
        bench.create(name, sftp(&secret)).await;
        match expected {
            None => drop(bench.phase(name, Phase::Running).await),
            Some(expected) => {
                let reason = bench.phase(name, Phase::Failed).await.reason.unwrap();
                assert!(reason.starts_with(&format!("SFTP validation failed: {expected}")), "{reason}");
                assert!(!reason.contains("canary"), "{reason}");
                assert!(bench.jobs().get_opt(name).await.unwrap().is_none());
            }
        }
    }
}

/// 11: both containers had the token of the gatherer.
#[tokio::test]
async fn mg_06_11_the_container_that_uploads_has_no_token() {
    let bench = Bench::new().await;
    let job = bench.job_of(settings(), sftp(&json!({}))).await;
    let covered = |container: &serde_json::Value| {
        let mounts = container["volumeMounts"].as_array().unwrap();
        let token = "/var/run/secrets/kubernetes.io/serviceaccount";
        mounts.iter().any(|mount| mount["mountPath"] == token && mount["name"] == "no-token")
    };
    assert!(covered(container(&job, "upload")));
    assert!(covered(&job["spec"]["template"]["spec"]["initContainers"][0]));
    assert!(!covered(container(&job, "gather")));
    let policy = &job["spec"]["podFailurePolicy"]["rules"][0];
    assert_eq!(
        (&policy["action"], &policy["onExitCodes"]["containerName"]),
        (&json!("FailJob"), &json!("upload"))
    );
}

/// Later spellings say the same, and both at once nothing clear.
#[tokio::test]
async fn later_spellings_are_taken_and_both_at_once_refused() {
    let bench = Bench::new().await;
    let later = json!({
        "serviceAccountName": "default",
        "gatherSpec": {"command": ["/bin/own"], "args": ["-v"], "since": "2h"},
    });
    let job = bench.job_of(settings(), later).await;
    let gather = container(&job, "gather");
    let command = gather["command"].as_array().unwrap();
    assert_eq!(command[command.len() - 2..], [json!("/bin/own"), json!("-v")]);
    assert_eq!(variable(gather, "MUST_GATHER_SINCE"), "2h");
    for (spec, refusal) in [
        (
            json!({"serviceAccountName": "a", "serviceAccountRef": {"name": "b"}}),
            "only one of serviceAccountName",
        ),
        (json!({"additionalConfig": {"audit": true}, "gatherSpec": {}}), "only one of gatherSpec"),
        (
            json!({"gatherSpec": {"since": "1h", "sinceTime": "2026-01-01T00:00:00Z"}}),
            "only one of since or sinceTime",
        ),
        (json!({"gatherSpec": {"audit": true, "command": ["a"]}}), "audit mode cannot be combined"),
        (json!({"storage": {"type": "PersistentVolume"}}), "persistentVolume is required"),
    ] {
        let object = admit::controllers::mustgather::crd::MustGather::new(
            "both",
            serde_json::from_value(spec).unwrap(),
        );
        let error = bench.objects().create(&kube::api::PostParams::default(), &object).await.unwrap_err();
        assert!(error.to_string().contains(refusal), "{error}");
    }
}
