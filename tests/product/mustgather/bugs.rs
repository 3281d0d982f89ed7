//! One test for each bug that the sheet knows of others, where the controller or the Job that it makes could have it too. Those of
//! the containers are in `containers`, those of proxies and host keys in `sftp`.

use std::sync::atomic::Ordering;

use admit::controllers::mustgather::crd::Phase;
use admit::gather::tunnel::Proxies;
use axum::http::Method;
use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use serde_json::json;

use super::{Bench, NAMESPACE, complete, container, failed, settings, sftp, variable};
use crate::support::cluster::PATIENCE;
use crate::support::relay::{FakeProxy, Manner};
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

/// 6: it was said to be completed as soon as the Job had a time of completion, whatever else was known.
#[tokio::test]
async fn mg_06_6_whoever_is_completed_has_a_status() {
    let bench = Bench::new().await;
    let watched = WatchParams::default().fields("metadata.name=sample");
    let changes = bench.objects().watch(&watched, "0").await.unwrap();
    bench.job_of(settings(), json!({})).await;
    let begun = json!({"startTime": "2026-01-01T00:00:00Z", "active": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}});
    bench.job_status("sample", begun).await;
    bench.job_status("sample", complete()).await;
    bench.phase("sample", Phase::Completed).await;
    let seen = changes.filter_map(async |change| match change.unwrap() {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => object.status,
        _ => None,
    });
    let mut seen = std::pin::pin!(seen);
    let looking = async {
        loop {
            let status = seen.next().await.unwrap();
            let ended = matches!(status.status, Some(Phase::Completed | Phase::Failed));
            assert_eq!(status.completed, ended, "{status:#?}");
            if ended {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap();
}

/// 10: the second run of an object of one name lay over the first on its volume.
#[tokio::test]
async fn mg_06_10_a_further_run_on_a_volume_leaves_the_one_before() {
    let bench = Bench::new().await;
    bench.start(settings());
    let storage = json!({"type": "PersistentVolume", "persistentVolume": {"claim": {"name": "data"}}});
    let mut paths = Vec::new();
    for _ in 0..2 {
        bench.create("sample", json!({"storage": storage})).await;
        let job = serde_json::to_value(bench.job("sample").await).unwrap();
        paths.push(container(&job, "gather")["volumeMounts"][0]["subPath"].as_str().unwrap().to_owned());
        bench.job_status("sample", complete()).await;
        bench.phase("sample", Phase::Completed).await;
        bench.objects().delete("sample", &DeleteParams::default()).await.unwrap();
        bench.gone(bench.objects(), "sample").await;
    }
    assert_ne!(paths[0], paths[1]);
}

/// 12: what an object said was overwritten by what the cluster says. Each value counts by itself: the object's, the cluster's, ours.
#[tokio::test]
async fn mg_06_12_proxies_of_the_object_count_over_those_of_the_cluster() {
    let bench = Bench::new().await;
    let definition = testing::definition(
        "proxies.config.openshift.io",
        "Proxy",
        "Cluster",
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    );
    let definitions: Api<CustomResourceDefinition> = Api::all(bench.client.clone());
    definitions.create(&PostParams::default(), &serde_json::from_value(definition).unwrap()).await.unwrap();
    let established = await_condition(definitions, "proxies.config.openshift.io", is_crd_established());
    tokio::time::timeout(PATIENCE, established).await.unwrap().unwrap();
    let of_cluster = json!({"httpProxy": "http://cluster:1", "httpsProxy": "http://cluster:2"});
    let proxy = json!({"metadata": {"name": "cluster"}, "spec": of_cluster, "status": of_cluster});
    bench.put("config.openshift.io", "Proxy", "proxies", "", proxy).await;
    let mut settings = settings();
    settings.rules.environment = Proxies {
        http: "http://env:1".to_owned(),
        https: "http://env:2".to_owned(),
        none: "env.test".to_owned(),
    };
    let mut spec = sftp(&json!({}));
    spec["proxyConfig"] = json!({"httpsProxy": "http://own:2"});
    let job = bench.job_of(settings, spec).await;
    let upload = container(&job, "upload");
    for (name, value) in
        [("https_proxy", "http://own:2"), ("http_proxy", "http://cluster:1"), ("no_proxy", "env.test")]
    {
        assert_eq!(variable(upload, name), value, "{name}");
    }
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

/// A proxy under TLS whose authority is given with `--proxy-ca`, to the look at the server as to the Job.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_under_tls_is_trusted_by_the_authority_that_is_given() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let proxy = FakeProxy::start(Manner::Connect(sshd.address), true).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.pem");
    std::fs::write(&path, &proxy.ca).unwrap();
    let bench = Bench::new().await;
    let known = sshd.known_as("sftp.example.com");
    let login = json!({"username": USER, "password": PASSWORD, "known_hosts": known});
    bench.secret(NAMESPACE, "behind", login).await;
    let mut spec = sftp(&json!({"caseManagementAccountSecretRef": {"name": "behind"}}));
    spec["proxyConfig"] = json!({"httpsProxy": format!("https://{}", proxy.address)});
    for (name, given) in [("without", false), ("with", true)] {
        let mut looking = settings();
        looking.rules.preflight = true;
        if given {
            looking.rules.proxy_ca = Some(proxy.ca.clone());
            looking.proxy_ca = Some(path.clone());
        }
        let running = bench.start(looking);
        bench.create(name, spec.clone()).await;
        if given {
            bench.phase(name, Phase::Running).await;
            let job = serde_json::to_value(bench.job(name).await).unwrap();
            assert_eq!(variable(container(&job, "upload"), "proxy_ca_pem"), proxy.ca.as_str());
        } else {
            let reason = bench.phase(name, Phase::Failed).await.reason.unwrap();
            assert!(reason.contains("certificate"), "{reason}");
        }
        running.cancel();
    }
}

/// An image that a stream knows gathers in the place of the default one.
#[tokio::test]
async fn an_image_stream_says_which_image_gathers() {
    let bench = Bench::new().await;
    bench.start(settings());
    let stream = json!({"name": "gather", "tag": "v2"});
    let failed = async |name: &str, expected: &str| {
        bench.create(name, json!({"imageStreamRef": stream})).await;
        let reason = bench.phase(name, Phase::Failed).await.reason.unwrap();
        assert_eq!(reason, format!("ImageStream validation failed: {expected}"));
    };
    failed("no-kind", "there is no ImageStream support/gather").await;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let names = json!({"plural": "imagestreams", "kind": "ImageStream", "singular": "imagestream", "listKind": "ImageStreamList"});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let spec =
        json!({"group": "image.openshift.io", "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = json!({"metadata": {"name": "imagestreams.image.openshift.io"}, "spec": spec});
    bench
        .put("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", "", definition)
        .await;
    let definitions: Api<CustomResourceDefinition> = Api::all(bench.client.clone());
    let name = "imagestreams.image.openshift.io";
    let established = await_condition(definitions, name, is_crd_established());
    tokio::time::timeout(crate::support::cluster::PATIENCE, established).await.unwrap().unwrap();
    let items =
        json!([{"dockerImageReference": "quay.example/gather@sha256:00"}, {"dockerImageReference": "older"}]);
    let tags = json!([{"tag": "v1", "items": []}, {"tag": "v2", "items": items}]);
    let object = json!({"metadata": {"name": "gather"}, "status": {"tags": tags}});
    bench.put("image.openshift.io", "ImageStream", "imagestreams", NAMESPACE, object).await;
    bench.create("sample", json!({"imageStreamRef": stream})).await;
    bench.phase("sample", Phase::Running).await;
    let job = serde_json::to_value(bench.job("sample").await).unwrap();
    let gather = container(&job, "gather");
    assert_eq!(gather["image"], "quay.example/gather@sha256:00");
    assert_eq!(gather["command"].as_array().unwrap().last().unwrap(), "/usr/bin/gather");
    bench.create("other-tag", json!({"imageStreamRef": {"name": "gather", "tag": "v1"}})).await;
    let reason = bench.phase("other-tag", Phase::Failed).await.reason.unwrap();
    assert_eq!(reason, "ImageStream validation failed: ImageStream support/gather has no image of tag v1");
}
