//! Runs one Pod from its scheduling to its last status, with its containers in their order.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::super::events::Note;
use super::instance::Stop;
use super::pod_status::{Place, PodState};
use super::restart_policy::Policy;
use super::run::Run;
use super::schedule::{Taken, schedule};
use super::worker::{Worker, hasten};
use super::{Context, News, ignored, limits};

/// Runs a Pod to its end.
pub(super) async fn live(context: Arc<Context>, mut news: News) {
    let Some(pod) = news.borrow().clone() else { return };
    let bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let begun = pod.status.as_ref().is_some_and(|status| status.start_time.is_some());
    if begun {
        return Worker::new(&context, (*pod).clone(), PodState::left(&pod)).fail_lost().await;
    }
    let taken = match bound {
        true => Some(Taken { pod: (*pod).clone(), place: None }),
        false => schedule(&context, &mut news).await,
    };
    let Some(Taken { pod, place }) = taken else { return };
    let board = PodState::new(&pod, Timestamp::now());
    let worker = Worker::new(&context, pod, board);
    worker.run(&mut news).await;
    drop(place);
}

type Beside<'a> = FuturesUnordered<BoxFuture<'a, Option<i32>>>;

impl Worker<'_> {
    async fn run(&self, news: &mut News) {
        self.step(|_, _| {}).await;
        let groups = &self.context.groups;
        let ignored = ignored::ignored(&self.pod, groups);
        if !ignored.is_empty() {
            let mut text = format!("not acted upon on this machine: {}", ignored.join(", "));
            if limits::are_missed(&self.pod, groups) {
                text = format!("{text}; {}", groups.remedy());
            }
            self.tell(Note::warning("IgnoredFields", text)).await;
        }
        let done = tokio::select! {
            done = self.work() => done,
            () = self.mind(news) => None,
        };
        self.conclude(done).await;
    }

    /// Runs the containers in their order; returns whether the main ones succeeded, or None if the Pod was terminated.
    async fn work(&self) -> Option<bool> {
        let spec = self.pod.spec.clone().unwrap_or_default();
        let policy = Policy::of_pod(spec.restart_policy.as_deref());
        let mut stop = Stop::new(&self.main);
        // Subscribed before the volumes are created, so that no change is missed.
        let changes = self.context.changes.subscribe();
        if !self.prepare(&mut stop).await {
            return None;
        }
        let mut beside = Beside::new();
        let refreshing = self.refreshed(changes);
        tokio::pin!(refreshing);
        let all = async {
            let inits = spec.init_containers.iter().flatten().enumerate();
            for (at, container) in inits {
                let place = Place { init: true, at };
                if container.restart_policy.as_deref() == Some("Always") {
                    let (begun, has_begun) = oneshot::channel();
                    let run = self.a_run(place, container, Policy::Always, &self.beside);
                    beside.push(Box::pin(run.keep(Some(begun))));
                    // A sidecar that is being started is asked to end only after this.
                    tokio::select! {
                        _ = while_beside(&mut beside, has_begun) => {}
                        () = stop.asked() => return None,
                    }
                } else {
                    let run = self.a_run(place, container, policy.of_init(), &self.main);
                    if while_beside(&mut beside, run.keep(None)).await? != 0 {
                        return Some(false);
                    }
                }
            }
            if !spec.init_containers.as_ref().is_none_or(Vec::is_empty) {
                self.step(PodState::initialized).await;
            }
            let main: Beside<'_> = FuturesUnordered::new();
            for (at, container) in spec.containers.iter().enumerate() {
                main.push(Box::pin(
                    self.a_run(Place { init: false, at }, container, policy, &self.main).keep(None),
                ));
            }
            let all = main.collect::<Vec<_>>();
            let codes = while_beside(&mut beside, all).await;
            codes
                .into_iter()
                .map(|code| code.map(|code| code == 0))
                .try_fold(true, |all, one| Some(all & one?))
        };
        let done = tokio::select! {
            done = all => done,
            () = &mut refreshing => None,
        };
        let at = self.main.borrow().unwrap_or_else(|| Instant::now() + self.grace());
        hasten(&self.beside, at);
        while beside.next().await.is_some() {}
        done
    }

    fn a_run<'r>(
        &'r self,
        place: Place,
        container: &'r Container,
        policy: Policy,
        stop: &watch::Sender<Option<Instant>>,
    ) -> Run<'r> {
        Run { worker: self, place, container, policy, stop: Stop::new(stop), starts: 0 }
    }
}

/// Waits for `main` while sidecar containers run.
async fn while_beside<T>(beside: &mut Beside<'_>, main: impl Future<Output = T>) -> T {
    tokio::pin!(main);
    loop {
        tokio::select! {
            done = &mut main => return done,
            Some(_) = beside.next() => {}
        }
    }
}
