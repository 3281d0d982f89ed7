//! Gathers which images run, counted by the month in which their Pods started, and the manifests of crash-looping Pods
//! in readable namespaces.

use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::super::anonymize;
use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Look, Run, Shared};
use super::pods::statuses;
use super::{name, namespace};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/container_images",
    collects: "running images by month of pod start, at most 1000, and pods that crash-loop",
    path: "config/running_containers.json, config/pod/{namespace}/{name}.json",
    run: Run::Each(Shared::Pods, |context| {
        async { Ok(Box::new(Counting { context, images: Images::default() }) as Box<dyn Look>) }.boxed()
    }),
};

const IMAGE_CAP: usize = 1000;

/// The counts so far.
struct Counting {
    context: Context,
    images: Images,
}

impl Look for Counting {
    fn at<'l>(&'l mut self, pod: &'l Value) -> BoxFuture<'l, Result<(), Failure>> {
        self.images.count(pod);
        let Self { context, .. } = self;
        let keep = async {
            if context.reads_namespace(namespace(pod)) && crash_loops(pod) {
                let mut pod = pod.clone();
                anonymize::proxy_variables(&mut pod);
                context.json(format!("config/pod/{}/{}", namespace(&pod), name(&pod)), pod).await?;
            }
            Ok(())
        };
        keep.boxed()
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Result<(), Failure>> {
        let Self { context, images } = *self;
        let Images { by_month, dropped, .. } = images;
        async move {
            if dropped > 0 {
                context
                    .recorder
                    .warn(format!("{dropped} images past the first {IMAGE_CAP} were not counted"));
            }
            if by_month.is_empty() {
                return Ok(());
            }
            context.json("config/running_containers", json!(by_month)).await
        }
        .boxed()
    }
}

#[derive(Default)]
struct Images {
    by_month: BTreeMap<String, BTreeMap<String, u64>>,
    entries: usize,
    dropped: u64,
}

impl Images {
    fn count(&mut self, pod: &Value) {
        let Some(started) = pod.pointer("/status/startTime").and_then(Value::as_str) else { return };
        let month = started.get(..7).unwrap_or(started).to_owned();
        for status in statuses(pod) {
            let Some(image) = status.get("image").and_then(Value::as_str) else { continue };
            let images = self.by_month.entry(month.clone()).or_default();
            match images.get_mut(image) {
                Some(count) => *count += 1,
                None if self.entries < IMAGE_CAP => {
                    images.insert(image.to_owned(), 1);
                    self.entries += 1;
                }
                None => self.dropped += 1,
            }
        }
    }
}

fn crash_loops(pod: &Value) -> bool {
    statuses(pod).any(|status| {
        status.pointer("/state/waiting/reason").is_some_and(|reason| reason == "CrashLoopBackOff")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_counted_by_month_of_pod_start() {
        let pod = |start: &str, image: &str| json!({"status": {"startTime": start, "containerStatuses": [{"image": image}]}});
        let mut images = Images::default();
        for pod in [
            pod("2026-10-02T00:00:00Z", "a"),
            pod("2026-10-30T00:00:00Z", "a"),
            pod("2026-11-01T00:00:00Z", "b"),
        ] {
            images.count(&pod);
        }
        assert_eq!(json!(images.by_month), json!({"2026-10": {"a": 2}, "2026-11": {"b": 1}}));
    }

    #[test]
    fn images_past_the_cap_are_told() {
        let mut images = Images { entries: IMAGE_CAP, ..Images::default() };
        images.count(&json!({"status": {"startTime": "2026-10", "containerStatuses": [{"image": "new"}]}}));
        assert_eq!(images.dropped, 1);
    }
}
