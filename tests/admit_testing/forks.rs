//! What forks share, and what they do not.

use admit_testing::{Controllers, Identity, TestCluster};
use allocation_counter::measure;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::warmed::{self, DEFINITIONS, OBJECTS, maps, object, things};

#[tokio::test]
async fn a_fork_begins_where_its_origin_is_and_goes_its_own_way() {
    let origin = warmed::cluster(2, 20).await;
    let fork = origin.fork().await;
    let (here, there) = (origin.client(), fork.client());
    assert_eq!(maps(&there).list(&ListParams::default()).await.unwrap().items.len(), 10);
    let (one, other) =
        (maps(&here).get("object-0").await.unwrap(), maps(&there).get("object-0").await.unwrap());
    assert_eq!((one.uid(), one.resource_version()), (other.uid(), other.resource_version()));

    maps(&there).delete("object-0", &DeleteParams::default()).await.unwrap();
    assert!(maps(&there).get_opt("object-0").await.unwrap().is_none());
    assert!(maps(&here).get_opt("object-0").await.unwrap().is_some());
    let thing = |size: i64| {
        object(
            json!({"apiVersion": "example.com/v1", "kind": "Thing0", "metadata": {"name": "new"}, "spec": {"size": size}}),
        )
    };
    things(&here).create(&PostParams::default(), &thing(1)).await.unwrap();
    assert!(things(&there).get_opt("new").await.unwrap().is_none());
    things(&there).create(&PostParams::default(), &thing(2)).await.unwrap();
    assert_eq!(things(&here).get("new").await.unwrap().data["spec"]["size"], 1);
    // Definitions and their rules are those of each.
    let refused = things(&there).create(&PostParams::default(), &thing(2_000_000)).await.unwrap_err();
    assert!(refused.to_string().contains("too large"), "{refused}");
    // What changes what is served, and who may do what, stays where it was changed.
    let definitions: Api<kube::api::DynamicObject> = Api::all_with(
        there.clone(),
        &kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
        )),
    );
    definitions.delete("thing0s.example.com", &DeleteParams::default()).await.unwrap();
    assert!(things(&there).list(&ListParams::default()).await.is_err());
    assert_eq!(things(&here).list(&ListParams::default()).await.unwrap().items.len(), 11);
    let joe = Identity::new("joe", []);
    let roles = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "joe"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "joe"}]});
    let kind = kube::core::GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding");
    let bindings: Api<kube::api::DynamicObject> =
        Api::all_with(there, &kube::api::ApiResource::from_gvk(&kind));
    bindings.create(&PostParams::default(), &object(roles)).await.unwrap();
    assert!(maps(&fork.client_as(joe.clone())).list(&ListParams::default()).await.is_ok());
    let refused = maps(&origin.client_as(joe)).list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
}

#[tokio::test]
async fn a_watch_of_the_origin_goes_on_in_the_fork() {
    let origin = warmed::cluster(0, 4).await;
    let seen = maps(&origin.client()).list(&ListParams::default()).await.unwrap();
    let seen = seen.metadata.resource_version.unwrap();
    maps(&origin.client()).delete("object-0", &DeleteParams::default()).await.unwrap();
    let fork = origin.fork().await;
    maps(&fork.client()).delete("object-2", &DeleteParams::default()).await.unwrap();
    let told = async |cluster: &TestCluster| {
        let (client, params) = (cluster.client(), WatchParams::default().timeout(1));
        let events = maps(&client).watch(&params, &seen).await.unwrap();
        let events: Vec<_> = events.try_collect().await.unwrap();
        let deleted = events.iter().filter_map(|event| match event {
            WatchEvent::Deleted(map) => Some(map.name_any()),
            _ => None,
        });
        deleted.collect::<Vec<_>>()
    };
    assert_eq!(told(&fork).await, ["object-0", "object-2"]);
    assert_eq!(told(&origin).await, ["object-0"]);
}

/// A fork is at most this large, whatever it is a fork of.
const LIMIT: u64 = 1 << 20;

#[test]
fn a_fork_allocates_little_and_no_more_for_more_objects() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let allocated = |definitions: usize, objects: usize| {
        let origin = runtime.block_on(warmed::cluster(definitions, objects));
        // The first one makes what all forks of this state share.
        drop(runtime.block_on(origin.fork()));
        let mut fork = None;
        let counted = measure(|| fork = Some(runtime.block_on(origin.fork())));
        drop(fork);
        (counted.count_total, counted.bytes_total)
    };
    let (count, bytes) = allocated(DEFINITIONS, OBJECTS);
    assert!(bytes <= LIMIT, "{bytes} bytes in {count} allocations");
    let (more_count, more_bytes) = allocated(DEFINITIONS, 2 * OBJECTS);
    assert_eq!((count, bytes), (more_count, more_bytes), "objects cost nothing");
    println!(
        "a fork of {DEFINITIONS} definitions and {OBJECTS} objects: {bytes} bytes in {count} allocations"
    );
}

/// A write copies what tells objects of that resource apart, and no object.
#[test]
fn the_first_write_to_a_resource_copies_no_object() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let origin = runtime.block_on(warmed::cluster(0, OBJECTS));
    let held: u64 = 500 * OBJECTS as u64;
    let fork = runtime.block_on(origin.fork());
    let _entered = runtime.enter();
    let maps = maps(&fork.client());
    let first = measure(|| {
        runtime.block_on(maps.delete("object-0", &DeleteParams::default())).unwrap();
    });
    let second = measure(|| {
        runtime.block_on(maps.delete("object-2", &DeleteParams::default())).unwrap();
    });
    let copied = first.bytes_total.saturating_sub(second.bytes_total);
    assert!(copied < held / 2, "{copied} bytes more than the second, and the objects have {held}");
}

#[tokio::test]
async fn a_reset_brings_back_what_was_there_and_ends_watches() {
    let cluster = warmed::cluster(1, 10).await.fork().await;
    let maps = maps(&cluster.client());
    let before = maps.get("object-0").await.unwrap();
    let mut watch = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    for _ in 0..5 {
        watch.try_next().await.unwrap().unwrap();
    }
    maps.delete("object-0", &DeleteParams::default()).await.unwrap();
    cluster.reset().await;
    assert_eq!(maps.get("object-0").await.unwrap(), before);
    while watch.try_next().await.unwrap().is_some() {}
    maps.delete("object-0", &DeleteParams::default()).await.unwrap();
    cluster.reset().await;
    assert_eq!(maps.get("object-0").await.unwrap(), before);
}

#[tokio::test]
async fn a_thousand_clusters_do_not_meet() {
    let origin = warmed::cluster(1, 10).await;
    let run = async |number: usize| {
        let fork = origin.fork().await;
        let map = json!({"metadata": {"name": "mine"}, "data": {"number": number.to_string()}});
        let map = serde_json::from_value(map).unwrap();
        maps(&fork.client()).create(&PostParams::default(), &map).await.unwrap();
        let own = maps(&fork.client()).get("mine").await.unwrap();
        assert_eq!(own.data.unwrap()["number"], number.to_string());
    };
    futures::stream::iter(0..1_000).for_each_concurrent(16, run).await;
    assert!(maps(&origin.client()).get_opt("mine").await.unwrap().is_none());
}

#[tokio::test]
async fn controllers_run_where_they_are_asked_for() {
    let owned = json!({"metadata": {"name": "orphan", "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "11111111-2222-3333-4444-555555555555"}
    ]}});
    let owned: k8s_openapi::api::core::v1::ConfigMap = serde_json::from_value(owned).unwrap();
    let bare = TestCluster::start().await.unwrap();
    maps(&bare.client()).create(&PostParams::default(), &owned).await.unwrap();
    bare.fork().await;
    assert!(maps(&bare.client()).get_opt("orphan").await.unwrap().is_some());

    let collecting = TestCluster::builder().controllers(Controllers::all()).start().await.unwrap();
    maps(&collecting.client()).create(&PostParams::default(), &owned).await.unwrap();
    while maps(&collecting.client()).get_opt("orphan").await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
}
