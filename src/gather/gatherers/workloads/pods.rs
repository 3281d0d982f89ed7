//! Gathers the shapes of the Pods of each namespace, and how many Pods have each. All Pods are counted; the number of shapes is limited.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::super::super::failure::Failure;
use super::super::super::gatherer::{Context, Gatherer, Look, Run, Shared};
use super::super::{hashed, namespace};
use super::images;
use super::runtimes::{self, Runtimes};
use super::shape::{Counted, Shape};

pub(in super::super) const ROW: Gatherer = Gatherer {
    id: "workloads/workload_info",
    collects: "shapes of pods by hashed namespace, at most 8000, with what runs in them where agents on nodes tell it, and layers of \
               their images where the cluster knows images",
    path: "config/workload_info.json",
    run: Run::Each(Shared::Pods, |context| begin(context).boxed()),
};

/// The most shapes of all namespaces together.
const MAX_SHAPES: usize = 8_000;

async fn begin(context: Context) -> Result<Box<dyn Look>, Failure> {
    let runtimes = runtimes::read(&context).await?;
    Ok(Box::new(Counting { context, runtimes, workloads: Workloads::default() }))
}

/// The counts so far.
struct Counting {
    context: Context,
    runtimes: Runtimes,
    workloads: Workloads,
}

impl Look for Counting {
    fn at<'l>(&'l mut self, pod: &'l Value) -> BoxFuture<'l, Result<(), Failure>> {
        self.workloads.count(pod, &self.runtimes);
        ready(Ok(())).boxed()
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Result<(), Failure>> {
        let Self { context, runtimes: _, workloads } = *self;
        async move { keep(&context, workloads).await }.boxed()
    }
}

async fn keep(context: &Context, workloads: Workloads) -> Result<(), Failure> {
    let Workloads { namespaces, pods, shapes: _, untold } = workloads;
    if pods == 0 {
        return Ok(());
    }
    if untold > 0 {
        context
            .recorder
            .warn(format!("{untold} pods are counted without their shapes, of which {MAX_SHAPES} are told"));
    }
    let ids: BTreeSet<&str> =
        namespaces.values().flat_map(|namespace| namespace.shapes.keys()).flat_map(Shape::images).collect();
    let count = ids.len();
    let images = images::read(context, ids.into_iter().map(str::to_owned).collect()).await;
    let namespaces: Value =
        namespaces.into_iter().map(|(name, namespace)| (name, namespace.into_json())).collect();
    let mut record = json!({"pods": pods, "imageCount": count, "namespaces": namespaces});
    if let (Some(fields), false) = (record.as_object_mut(), images.is_empty()) {
        fields.insert("images".to_owned(), Value::Object(images));
    }
    context.json("config/workload_info", record).await
}

#[derive(Default)]
struct Workloads {
    namespaces: BTreeMap<String, Namespace>,
    pods: u64,
    shapes: usize,
    untold: u64,
}

#[derive(Default)]
struct Namespace {
    count: u64,
    terminal: u64,
    ignored: u64,
    invalid: u64,
    /// The number of Pods with each shape, in the order of their discovery.
    shapes: IndexMap<Shape, u64>,
}

impl Workloads {
    fn count(&mut self, pod: &Value, runtimes: &Runtimes) {
        self.pods += 1;
        let namespace = self.namespaces.entry(hashed::short(namespace(pod))).or_default();
        namespace.count += 1;
        match Counted::of(pod, runtimes) {
            Counted::Terminal => namespace.terminal += 1,
            Counted::Ignored => namespace.ignored += 1,
            Counted::Invalid => namespace.invalid += 1,
            Counted::Shaped(shape) => match namespace.shapes.get_mut(&shape) {
                Some(count) => *count += 1,
                None if self.shapes < MAX_SHAPES => {
                    self.shapes += 1;
                    namespace.shapes.insert(shape, 1);
                }
                None => self.untold += 1,
            },
        }
    }
}

impl Namespace {
    fn into_json(self) -> Value {
        let Self { count, terminal, ignored, invalid, shapes } = self;
        let mut told = json!({"count": count});
        for (field, count) in
            [("terminalCount", terminal), ("ignoredCount", ignored), ("invalidCount", invalid)]
        {
            if count > 0 {
                told[field] = json!(count);
            }
        }
        let shape = |(shape, count): (Shape, u64)| {
            let mut told = serde_json::to_value(shape).unwrap_or_default();
            if count > 1 {
                told["duplicates"] = json!(count - 1);
            }
            told
        };
        told["shapes"] = shapes.into_iter().map(shape).collect();
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pod_is_counted_and_shapes_up_to_their_limit() {
        let mut workloads = Workloads::default();
        let pod = |n: usize| {
            let image = format!("sha256:{n:064x}");
            json!({
                "metadata": {"name": "p", "namespace": "shop"}, "spec": {"containers": [{"name": "a"}]},
                "status": {"phase": "Running", "containerStatuses": [{"name": "a", "imageID": image}]},
            })
        };
        let unknown = Runtimes::new();
        (0..MAX_SHAPES + 3).for_each(|n| workloads.count(&pod(n), &unknown));
        workloads.count(&pod(0), &unknown);
        workloads.count(&json!({"metadata": {"namespace": "bank"}, "status": {"phase": "Failed"}}), &unknown);
        assert_eq!((workloads.pods, workloads.shapes, workloads.untold), (8_005, MAX_SHAPES, 3));
        let shop = workloads.namespaces.remove(&hashed::short("shop")).unwrap().into_json();
        assert_eq!((&shop["count"], &shop["shapes"][0]["duplicates"]), (&json!(8_004), &json!(1)));
        assert!(shop["shapes"][1]["duplicates"].is_null());
        let bank = workloads.namespaces.remove(&hashed::short("bank")).unwrap().into_json();
        assert_eq!(bank, json!({"count": 1, "terminalCount": 1, "shapes": []}));
    }
}
