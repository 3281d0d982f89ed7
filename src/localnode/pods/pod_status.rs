//! Tracks the state of a Pod that runs here, and builds its status: phases, conditions and container states as a kubelet
//! writes them. No I/O.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::ADDRESS;
use super::restart_policy::Policy;

/// How a Pod ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) succeeded: bool,
    /// Set if the end was not caused by the containers.
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct PodState {
    init: Vec<ContainerStatus>,
    main: Vec<ContainerStatus>,
    conditions: Vec<PodCondition>,
    generation: Option<i64>,
    started: Timestamp,
    qos: Option<String>,
    policy: Policy,
    /// The indexes of sidecars among the init containers.
    beside: Vec<usize>,
    pub(super) end: Option<End>,
}

/// The results of the probes of a running container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Health {
    pub(super) started: bool,
    pub(super) ready: bool,
}

/// A container of the Pod: the list that contains it, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) init: bool,
    pub(super) at: usize,
}

impl PodState {
    /// Creates the state of a new Pod without running containers.
    pub(super) fn new(pod: &Pod, now: Timestamp) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let status = pod.status.clone().unwrap_or_default();
        let has_init = spec.init_containers.as_ref().is_some_and(|list| !list.is_empty());
        let reason = if has_init { "PodInitializing" } else { "ContainerCreating" };
        let init = spec.init_containers.iter().flatten().map(|container| slot(container, "PodInitializing"));
        let mut board = Self {
            init: init.collect(),
            main: spec.containers.iter().map(|container| slot(container, reason)).collect(),
            conditions: Vec::new(),
            generation: pod.metadata.generation,
            started: now,
            qos: status.qos_class,
            policy: Policy::of_pod(spec.restart_policy.as_deref()),
            beside: beside(pod),
            end: None,
        };
        let unready = unready(&spec.containers.iter().map(|c| c.name.clone()).collect::<Vec<_>>());
        board.set("PodReadyToStartContainers", false, None, now);
        match has_init {
            true => board.set(
                "Initialized",
                false,
                Some(("ContainersNotInitialized", incomplete(&board.init))),
                now,
            ),
            false => board.set("Initialized", true, None, now),
        }
        board.set("Ready", false, Some(("ContainersNotReady", unready.clone())), now);
        board.set("ContainersReady", false, Some(("ContainersNotReady", unready)), now);
        let scheduled = status.conditions.into_iter().flatten().find(|one| one.type_ == "PodScheduled");
        board.conditions.extend(scheduled);
        board
    }

    /// Restores the state of a Pod of an earlier process.
    pub(super) fn left(pod: &Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let now = Timestamp::now();
        Self {
            init: status.init_container_statuses.unwrap_or_default(),
            main: status.container_statuses.unwrap_or_default(),
            conditions: status.conditions.unwrap_or_default(),
            generation: pod.metadata.generation,
            started: status.start_time.map_or(now, |time| time.0),
            qos: status.qos_class,
            policy: Policy::Never,
            beside: beside(pod),
            end: None,
        }
    }

    fn slot(&mut self, place: Place) -> Option<&mut ContainerStatus> {
        if place.init { self.init.get_mut(place.at) } else { self.main.get_mut(place.at) }
    }

    pub(super) fn waiting(&mut self, place: Place, reason: &str, message: Option<String>) {
        if let Some(slot) = self.slot(place) {
            // The last end is shown until the container runs again.
            if let Some(terminated) = slot.state.as_ref().filter(|state| state.terminated.is_some()) {
                slot.last_state = Some(terminated.clone());
            }
            let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
            slot.state = Some(ContainerState { waiting: Some(waiting), ..ContainerState::default() });
            (slot.ready, slot.started) = (false, Some(false));
        }
    }

    /// Sets the results of probes for a container, if it still runs.
    pub(super) fn health(&mut self, place: Place, health: Health) {
        if let Some(slot) = self.slot(place).filter(|slot| runs(slot)) {
            (slot.ready, slot.started) = (health.ready, Some(health.started));
        }
    }

    pub(super) fn running(&mut self, place: Place, id: String, health: Health, now: Timestamp) {
        if let Some(slot) = self.slot(place) {
            count_start(slot);
            let running = ContainerStateRunning { started_at: Some(Time(now)) };
            slot.state = Some(ContainerState { running: Some(running), ..ContainerState::default() });
            slot.container_id = Some(id);
            slot.image_id = slot.image.clone();
            (slot.ready, slot.started) = (health.ready, Some(health.started));
        }
        self.set("PodReadyToStartContainers", true, None, now);
    }

    pub(super) fn terminated(&mut self, place: Place, how: ContainerStateTerminated) {
        if let Some(slot) = self.slot(place) {
            if slot.state.as_ref().is_some_and(|state| state.waiting.is_some()) {
                count_start(slot);
            }
            let id = how.container_id.clone().or_else(|| slot.container_id.clone());
            // A completed init container is ready, which distinguishes it from a failed one.
            slot.ready = place.init && how.exit_code == 0;
            slot.started = Some(false);
            let terminated = ContainerStateTerminated { container_id: id, ..how };
            slot.state = Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
        }
    }

    /// Marks all containers that have not ended as ended in this way.
    pub(super) fn lose(&mut self, how: &ContainerStateTerminated) {
        let places = (0..self.init.len()).map(|at| Place { init: true, at });
        for place in
            places.chain((0..self.main.len()).map(|at| Place { init: false, at })).collect::<Vec<_>>()
        {
            let open = self
                .slot(place)
                .is_some_and(|slot| slot.state.as_ref().is_none_or(|state| state.terminated.is_none()));
            if open {
                self.terminated(place, how.clone());
            }
        }
    }

    pub(super) fn initialized(&mut self, now: Timestamp) {
        self.set("Initialized", true, None, now);
    }

    /// Sets a condition, whose transition time changes only with its status.
    pub(super) fn set(&mut self, kind: &str, holds: bool, why: Option<(&str, String)>, now: Timestamp) {
        let status = if holds { "True" } else { "False" };
        let (reason, message) = why.map(|(reason, message)| (reason.to_owned(), message)).unzip();
        let message = message.filter(|message| !message.is_empty());
        let generation = self.generation;
        let next = |since| PodCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason,
            message,
            observed_generation: generation,
            last_probe_time: None,
            last_transition_time: since,
        };
        match self.conditions.iter_mut().find(|condition| condition.type_ == kind) {
            Some(old) if old.status == status => *old = next(old.last_transition_time.clone()),
            Some(old) => *old = next(Some(Time(now))),
            None => self.conditions.push(next(Some(Time(now)))),
        }
    }

    /// Detects that all containers have ended by themselves.
    pub(super) fn find_end(&mut self) {
        let code = |slot: &ContainerStatus| Some(slot.state.as_ref()?.terminated.as_ref()?.exit_code);
        let final_ = |code: &i32, policy: Policy| !policy.starts_again(*code);
        if self.end.is_some() || self.beside.iter().filter_map(|at| self.init.get(*at)).any(runs) {
            return;
        }
        let inits = self.init.iter().enumerate().filter(|(at, _)| !self.beside.contains(at));
        let init_failed = inits
            .filter_map(|(_, slot)| code(slot))
            .any(|code| code != 0 && final_(&code, self.policy.of_init()));
        let codes: Option<Vec<i32>> =
            self.main.iter().map(|slot| code(slot).filter(|code| final_(code, self.policy))).collect();
        let succeeded = match codes {
            _ if init_failed => false,
            Some(codes) => codes.iter().all(|code| *code == 0),
            None => return,
        };
        self.end = Some(End { succeeded, reason: None, message: None });
    }

    fn phase(&self) -> &'static str {
        match &self.end {
            Some(End { succeeded: true, .. }) => "Succeeded",
            Some(End { succeeded: false, .. }) => "Failed",
            None if self.main.iter().any(has_begun) => "Running",
            None => "Pending",
        }
    }

    /// Updates the conditions about readiness from the states of the containers.
    fn judge(&mut self, now: Timestamp) {
        let over = match &self.end {
            Some(end) if end.succeeded => Some("PodCompleted"),
            Some(_) => Some("PodFailed"),
            None => None,
        };
        if let Some(reason) = over {
            if reason == "PodCompleted" {
                self.set("Initialized", true, Some((reason, String::new())), now);
            }
            self.set("PodReadyToStartContainers", false, None, now);
            self.set("Ready", false, Some((reason, String::new())), now);
            self.set("ContainersReady", false, Some((reason, String::new())), now);
            return;
        }
        let beside = self.beside.iter().filter_map(|at| self.init.get(*at));
        let names: Vec<String> =
            beside.chain(&self.main).filter(|slot| !slot.ready).map(|slot| slot.name.clone()).collect();
        let why = || (!names.is_empty()).then(|| ("ContainersNotReady", unready(&names)));
        self.set("Ready", names.is_empty(), why(), now);
        self.set("ContainersReady", names.is_empty(), why(), now);
    }

    /// Returns the status to store.
    pub(super) fn status(&mut self, now: Timestamp) -> PodStatus {
        self.judge(now);
        let (reason, message) = match &self.end {
            Some(end) => (end.reason.clone(), end.message.clone()),
            None => (None, None),
        };
        PodStatus {
            phase: Some(self.phase().to_owned()),
            conditions: Some(self.conditions.clone()),
            reason,
            message,
            host_ip: Some(ADDRESS.to_owned()),
            host_ips: Some(vec![HostIP { ip: ADDRESS.to_owned() }]),
            pod_ip: Some(ADDRESS.to_owned()),
            pod_ips: Some(vec![PodIP { ip: ADDRESS.to_owned() }]),
            start_time: Some(Time(self.started)),
            observed_generation: self.generation,
            init_container_statuses: (!self.init.is_empty()).then(|| self.init.clone()),
            container_statuses: Some(self.main.clone()),
            qos_class: self.qos.clone(),
            ..PodStatus::default()
        }
    }
}

fn runs(slot: &ContainerStatus) -> bool {
    slot.state.as_ref().is_some_and(|state| state.running.is_some())
}

fn beside(pod: &Pod) -> Vec<usize> {
    let inits = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten()).enumerate();
    inits.filter(|(_, one)| one.restart_policy.as_deref() == Some("Always")).map(|(at, _)| at).collect()
}

fn slot(container: &Container, reason: &str) -> ContainerStatus {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message: None };
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        started: Some(false),
        state: Some(ContainerState { waiting: Some(waiting), ..ContainerState::default() }),
        last_state: Some(ContainerState::default()),
        ..ContainerStatus::default()
    }
}

/// Whether a container runs, has run, or is between two runs.
fn has_begun(slot: &ContainerStatus) -> bool {
    let begun = |state: &Option<ContainerState>| {
        state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    };
    begun(&slot.state) || begun(&slot.last_state)
}

/// Increases the restart count if there was an earlier run.
fn count_start(slot: &mut ContainerStatus) {
    let again = slot.last_state.as_ref().is_some_and(|last| *last != ContainerState::default());
    slot.restart_count += i32::from(again);
}

fn unready(names: &[String]) -> String {
    format!("containers with unready status: [{}]", names.join(" "))
}

fn incomplete(init: &[ContainerStatus]) -> String {
    let names: Vec<&str> = init.iter().map(|slot| slot.name.as_str()).collect();
    format!("containers with incomplete status: [{}]", names.join(" "))
}
