//! Params that a cluster does not have (yet): what an operator reads of them.

use admit::controllers::policies::ClusterCache;
use admit_policy::GroupVersionKind;
use http::Method;

use crate::support::cluster::FakeCluster;
use crate::support::logs;

/// They are asked for again and again; an operator is told what is new.
#[tokio::test]
async fn params_that_stay_unknown_are_told_once() {
    const KINDS: &str = "/apis/example.com/v1";
    let fake = FakeCluster::new(&[]);
    let (cluster, _driver) = ClusterCache::new(fake.client());
    let limit = || [GroupVersionKind::new("example.com", "v1", "Limit")];
    let told = async || {
        let logs = logs::capture();
        cluster.want_params(limit()).await;
        logs.take().matches("params are not known yet").count()
    };
    assert_eq!((told().await, told().await, told().await), (1, 0, 0));
    fake.refuse_once(Method::GET, KINDS, 403);
    assert_eq!((told().await, told().await, told().await), (1, 1, 0), "another reason, and the first again");
    // Whoever asks for them anew has not heard.
    cluster.want_params([]).await;
    assert_eq!(told().await, 1);
    assert_eq!(fake.count(&Method::GET, KINDS), 7);
}
