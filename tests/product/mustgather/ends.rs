//! Final means final: what has ended is not begun again, whoever restarts, deletes the Job, edits the object, or makes what was
//! missing.

use std::time::Duration;

use admit::controllers::mustgather::Settings;
use admit::controllers::mustgather::crd::{MustGather, Phase};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::stuck::waits;
use super::{Bench, NAMESPACE, complete, failed, settings};

/// The ways to an end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Completed,
    Failed,
    /// Its account was missing: there never was a Job.
    Refused,
    /// Its Pod waited for an image.
    Stuck,
}

async fn ended(bench: &Bench, way: Way, retain: bool) -> MustGather {
    let mut spec = json!({"retainResourcesOnCompletion": retain});
    if way == Way::Refused {
        spec["serviceAccountRef"] = json!({"name": "late"});
    }
    bench.create("sample", spec).await;
    match way {
        Way::Refused => {}
        Way::Completed | Way::Failed => {
            bench.job("sample").await;
            bench.job_status("sample", if way == Way::Completed { complete() } else { failed() }).await;
        }
        Way::Stuck => waits(bench, "sample", "ErrImagePull", "not found").await,
    }
    let object = bench.until("sample", |status| status.completed).await;
    if !retain && way != Way::Refused {
        bench.gone(bench.jobs(), "sample").await;
    }
    object
}

fn soon() -> Settings {
    let mut soon = settings();
    soon.rules.stuck_for = Duration::ZERO;
    soon
}

async fn edit(bench: &Bench, patch: Value) {
    bench.objects().patch("sample", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

/// Waits until whoever had to look at `sample` again has done so.
async fn settled(bench: &Bench, after: &str) {
    bench.create(after, json!({})).await;
    bench.phase(after, Phase::Running).await;
}

#[tokio::test]
async fn what_has_ended_stays_ended() {
    for way in [Way::Completed, Way::Failed, Way::Refused, Way::Stuck] {
        for retain in [false, true] {
            let bench = Bench::new().await;
            let first = bench.start(soon());
            let before = ended(&bench, way, retain).await;
            let account = json!({"metadata": {"name": "late"}});
            bench.put("", "ServiceAccount", "serviceaccounts", NAMESPACE, account).await;
            first.cancel();
            bench.start(soon());
            settled(&bench, "restarted").await;
            edit(
                &bench,
                json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"mustGatherTimeout": "1h"}}),
            )
            .await;
            settled(&bench, "edited").await;
            if retain && way != Way::Refused {
                bench.jobs().delete("sample", &DeleteParams::background()).await.unwrap();
                bench.gone(bench.jobs(), "sample").await;
            }
            settled(&bench, "deleted").await;
            let after = bench.objects().get("sample").await.unwrap();
            assert_eq!(after.status, before.status, "{way:?}, retained: {retain}");
            let jobs = bench.jobs().list(&ListParams::default()).await.unwrap();
            let mut names: Vec<_> = jobs.iter().map(|job| job.name_any()).collect();
            names.sort();
            assert_eq!(names, ["deleted", "edited", "restarted"], "{way:?}, retained: {retain}");
        }
    }
}

/// Who asks for it later gets what was retained cleaned up, and nothing else changes.
#[tokio::test]
async fn what_was_retained_goes_when_that_is_asked_for() {
    let bench = Bench::new().await;
    bench.start(soon());
    let before = ended(&bench, Way::Completed, true).await;
    assert!(bench.jobs().get_opt("sample").await.unwrap().is_some());
    edit(&bench, json!({"spec": {"retainResourcesOnCompletion": false}})).await;
    bench.gone(bench.jobs(), "sample").await;
    assert_eq!(bench.objects().get("sample").await.unwrap().status, before.status);
}
