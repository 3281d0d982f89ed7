//! The group of workers: what is configured, who knows of it, and what runs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{Manner, sink};
use crate::soak::Random;

/// How often the group looks after itself: often enough for tests, seldom enough for their machine.
const TICK: Duration = Duration::from_millis(3);

/// How everything is answered.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// A page, with this code, as a proxy in front answers it.
    Page(u16),
    /// 500 in the words of Kafka Connect.
    TimedOut,
    /// A body that does not end.
    Endless,
    Silent,
}

/// What a connector is to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Target {
    Started,
    Paused,
    Stopped,
}

enum Record {
    Config(Option<BTreeMap<String, String>>),
    Target(Target),
}

/// What a worker knows of a connector.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) config: BTreeMap<String, String>,
    pub(super) target: Target,
    /// Grows with each change of the configuration.
    generation: usize,
}

/// State, and trace where it is one of failure.
type Told = (&'static str, Option<String>);

/// A connector that the workers have begun with.
pub(super) struct Running {
    generation: usize,
    worker: usize,
    state: Told,
    tasks: Vec<Task>,
}

struct Task {
    worker: usize,
    state: Told,
    work: Option<AbortHandle>,
    /// So many times it fails when it is started.
    to_fail: usize,
}

pub(super) struct Group {
    /// The topic of configurations: when, of which connector, what.
    log: Vec<(Instant, String, Record)>,
    running: BTreeMap<String, Running>,
    rebalance_ends: Instant,
    pub(super) held: bool,
    pub(super) fault: Option<Fault>,
    /// What a request has to show, where anything.
    pub(super) entry: Option<String>,
    pub(super) asked: Vec<String>,
    manner: Manner,
    random: Random,
}

pub(super) struct Shared {
    pub(super) group: Mutex<Group>,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) topics: PathBuf,
}

impl Shared {
    pub(super) fn new(manner: Manner, addresses: Vec<SocketAddr>, topics: PathBuf) -> Arc<Self> {
        let random = Random(manner.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let group = Group {
            log: Vec::new(),
            running: BTreeMap::new(),
            rebalance_ends: Instant::now(),
            held: false,
            fault: None,
            entry: None,
            asked: Vec::new(),
            manner,
            random,
        };
        Arc::new(Self { group: Mutex::new(group), addresses, topics })
    }

    fn worker_id(&self, worker: usize) -> String {
        self.addresses[worker].to_string()
    }

    /// The entity of a connector's state; none before workers have begun with it.
    pub(super) fn status(&self, connector: &str) -> Option<Value> {
        let group = self.group.lock().unwrap();
        let running = group.running.get(connector)?;
        let told = |(state, trace): &Told, worker: usize, id: Option<usize>| {
            let mut part = json!({"state": state, "worker_id": self.worker_id(worker)});
            if let Some(id) = id {
                part["id"] = json!(id);
            }
            if let Some(trace) = trace {
                part["trace"] = json!(trace);
            }
            part
        };
        let tasks = running.tasks.iter().enumerate();
        let tasks: Vec<_> = tasks.map(|(id, task)| told(&task.state, task.worker, Some(id))).collect();
        let own = told(&running.state, running.worker, None);
        Some(json!({"name": connector, "connector": own, "tasks": tasks, "type": "sink"}))
    }
}

impl Group {
    /// What a worker has read of the topic so far.
    pub(super) fn view(&self, worker: usize) -> BTreeMap<String, Known> {
        let behind = if worker == 0 { Duration::ZERO } else { self.manner.behind };
        let (mut view, now): (BTreeMap<String, Known>, _) = (BTreeMap::new(), Instant::now());
        let read = self.log.iter().take_while(|(at, ..)| *at + behind <= now);
        for (generation, (_, name, record)) in read.enumerate() {
            match record {
                Record::Config(None) => drop(view.remove(name)),
                Record::Config(Some(config)) => {
                    let target = view.get(name).map_or(Target::Started, |known| known.target);
                    view.insert(name.clone(), Known { config: config.clone(), target, generation });
                }
                Record::Target(target) => {
                    if let Some(known) = view.get_mut(name) {
                        known.target = *target;
                    }
                }
            }
        }
        view
    }

    pub(super) fn rebalances(&self) -> bool {
        self.held || Instant::now() < self.rebalance_ends
    }

    fn write(&mut self, connector: &str, record: Record) {
        self.log.push((Instant::now(), connector.to_owned(), record));
    }

    /// Writes a configuration, or takes it away, which leads to a rebalance.
    pub(super) fn configure(&mut self, connector: &str, config: Option<BTreeMap<String, String>>) {
        self.write(connector, Record::Config(config));
        self.rebalance_ends = Instant::now() + self.manner.rebalance;
    }

    pub(super) fn aim(&mut self, connector: &str, target: Target) {
        self.write(connector, Record::Target(target));
    }

    /// Environment, lag and a seed for a task.
    pub(super) fn surroundings(&mut self) -> (BTreeMap<String, String>, Duration, Random) {
        let seed = self.random.next();
        (self.manner.environment.clone(), self.manner.lag, Random(seed | 1))
    }

    pub(super) fn fail(&mut self, connector: &str, task: usize, times: usize) {
        let running = self.running.get_mut(connector).unwrap();
        let task = &mut running.tasks[task];
        task.to_fail = times;
        task.begin_to_fail();
    }

    /// A task says that it cannot go on.
    pub(super) fn failed(&mut self, connector: &str, task: usize, trace: String) {
        if let Some(task) = self.running.get_mut(connector).and_then(|it| it.tasks.get_mut(task)) {
            task.state = ("FAILED", Some(trace));
            task.work = None;
        }
    }

    /// Has what failed started again, or all of it: the connector, its tasks, or both.
    pub(super) fn restart(&mut self, connector: &str, which: Restart) -> bool {
        let Some(running) = self.running.get_mut(connector) else { return false };
        let wanted = |state: &Told| !which.only_failed || state.0 == "FAILED";
        if which.task.is_none() && wanted(&running.state) {
            running.state = ("RESTARTING", None);
        }
        for (id, task) in running.tasks.iter_mut().enumerate() {
            let named = which.task.map_or(which.with_tasks, |named| named == id);
            if named && wanted(&task.state) {
                task.stop();
                task.state = ("RESTARTING", None);
            }
        }
        true
    }

    pub(super) fn has_task(&self, connector: &str, task: usize) -> bool {
        self.running.get(connector).is_some_and(|running| task < running.tasks.len())
    }

    pub(super) fn task_count(&self, connector: &str) -> usize {
        self.running.get(connector).map_or(0, |running| running.tasks.len())
    }

    pub(super) fn end(&mut self) {
        self.running.values_mut().for_each(Running::stop);
    }
}

/// What a restart is about.
#[derive(Clone, Copy)]
pub(super) struct Restart {
    pub(super) task: Option<usize>,
    pub(super) with_tasks: bool,
    pub(super) only_failed: bool,
}

impl Running {
    fn stop(&mut self) {
        self.tasks.iter_mut().for_each(Task::stop);
    }
}

impl Task {
    fn stop(&mut self) {
        if let Some(work) = self.work.take() {
            work.abort();
        }
    }

    /// Fails as often as it is told to.
    fn begin_to_fail(&mut self) -> bool {
        if self.to_fail == 0 {
            return false;
        }
        self.to_fail -= 1;
        self.stop();
        let trace = "org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.\n\tat \
                     org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:632)\nCaused by: \
                     java.sql.SQLException: password=canary-trace";
        self.state = ("FAILED", Some(trace.to_owned()));
        true
    }
}

/// Begins, ends and goes on with connectors and tasks, as the topic of configurations says.
pub(super) async fn keep(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        tend(&shared);
    }
}

fn tend(shared: &Arc<Shared>) {
    let mut group = shared.group.lock().unwrap();
    if group.rebalances() {
        return;
    }
    let view = group.view(0);
    let mut running = std::mem::take(&mut group.running);
    running.retain(|name, it| {
        let stays = view.get(name).is_some_and(|known| known.generation == it.generation);
        if !stays {
            it.stop();
        }
        stays
    });
    for (at, (name, known)) in view.iter().enumerate() {
        let workers = shared.addresses.len();
        let entry = running.entry(name.clone()).or_insert_with(|| {
            let count: usize = known.config["tasks.max"].parse().unwrap();
            let task = |id| Task {
                worker: (at + id) % workers,
                state: ("UNASSIGNED", None),
                work: None,
                to_fail: 0,
            };
            let tasks = (0..count).map(task).collect();
            Running { generation: known.generation, worker: at % workers, state: ("UNASSIGNED", None), tasks }
        });
        drive(shared, &mut group, name, known, entry);
    }
    group.running = running;
}

fn drive(shared: &Arc<Shared>, group: &mut Group, name: &str, known: &Known, running: &mut Running) {
    let aim = match known.target {
        Target::Started => "RUNNING",
        Target::Paused => "PAUSED",
        Target::Stopped => "STOPPED",
    };
    if running.state.0 != "FAILED" {
        running.state = (aim, None);
    }
    if known.target == Target::Stopped {
        running.stop();
        running.tasks.clear();
    }
    for (id, task) in running.tasks.iter_mut().enumerate() {
        match task.state.0 {
            "FAILED" => {}
            state if state == aim => {}
            _ if aim == "PAUSED" => {
                task.stop();
                task.state = ("PAUSED", None);
            }
            _ => {
                if task.begin_to_fail() {
                    continue;
                }
                task.stop();
                let job = sink::Job::new(shared, group, name, id, &known.config);
                task.work = Some(tokio::spawn(job.run()).abort_handle());
                task.state = ("RUNNING", None);
            }
        }
    }
    // Stopped ones have no tasks, and get them again when they are started.
    let count: usize = known.config["tasks.max"].parse().unwrap();
    if known.target == Target::Started && running.tasks.is_empty() && count > 0 {
        running.generation = usize::MAX;
    }
}
