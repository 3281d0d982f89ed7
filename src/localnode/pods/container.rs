//! Runs one container of a Pod through all its restarts.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, ContainerStateTerminated, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, ResourceExt as _};
use tokio::sync::{oneshot, watch};

use super::super::cgroups::Group;
use super::super::events::Note;
use super::super::images::{self, Image};
use super::super::log::Log;
use super::super::supervise::protocol::{Mount, Order};
use super::env::{self, Kind, Sources, Texts};
use super::error::{ContainerConfigError, VolumeError};
use super::instance::{Errands, Exit, Instance, StartError, Stop};
use super::limits;
use super::probes::{self, Checks};
use super::run::Run;
use super::service_account;
use super::termination_message::TerminationMessage;
use super::volumes::Volumes;
use super::worker::Worker;
use crate::private;

/// The longest wait before a restart.
const LONGEST: Duration = Duration::from_mins(5);
/// A container that ran for this long restarts with the shortest wait again.
const STEADY: Duration = Duration::from_mins(10);
/// How soon missing objects are looked up again.
const MISSING: Duration = Duration::from_secs(2);
/// The exit code of container runtimes for a program that cannot be started.
const NO_START: i32 = 128;

impl Run<'_> {
    /// Runs the container as often as its policy says; returns its last exit code, or None if it never ran to its end before
    /// the Pod was terminated.
    pub(super) async fn keep(mut self, mut begun: Option<oneshot::Sender<()>>) -> Option<i32> {
        let first = self.worker.context.settings.pace.crash_backoff;
        let mut wait = first;
        let image = self.image().await?;
        loop {
            let order = self.ordered(&image).await?;
            let (code, ran) = self.once(&order, &mut begun).await?;
            if self.stop.is_asked() || !self.policy.starts_again(code) {
                return Some(code);
            }
            if ran >= STEADY {
                wait = first;
            }
            self.back_off(wait).await;
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.stop.asked() => return Some(code),
            }
            wait = (wait * 2).min(LONGEST);
        }
    }

    fn words(&self) -> TerminationMessage {
        TerminationMessage::of(&self.worker.folder, self.container)
    }

    async fn back_off(&self, wait: Duration) {
        let worker = self.worker;
        let pod = format!(
            "{}_{}({})",
            worker.pod.name_any(),
            worker.pod.namespace().unwrap_or_default(),
            worker.pod.uid().unwrap_or_default()
        );
        let name = &self.container.name;
        let text = format!("back-off {}s restarting failed container={name} pod={pod}", wait.as_secs());
        worker.step(|board, _| board.waiting(self.place, "CrashLoopBackOff", Some(text))).await;
        let text = format!("Back-off restarting failed container {name} in pod {pod}");
        self.tell(Note::warning("BackOff", text)).await;
    }

    /// Returns the replacement of the image. If there is none, that is reported, and this waits until the Pod is deleted.
    async fn image(&mut self) -> Option<Image> {
        let name = self.container.image.clone().unwrap_or_default();
        if let Some(image) = self.worker.context.settings.images.find(&name) {
            return Some(image);
        }
        let why = images::remedy(&name);
        let (place, worker) = (self.place, self.worker);
        worker.step(|board, _| board.waiting(place, "ErrImagePull", Some(why.clone()))).await;
        self.tell(Note::warning("Failed", format!("Failed to pull image {name:?}: {why}"))).await;
        self.tell(Note::warning("Failed", "Error: ErrImagePull")).await;
        let text = format!("Back-off pulling image {name:?}: ErrImagePull: {why}");
        worker.step(|board, _| board.waiting(place, "ImagePullBackOff", Some(text))).await;
        self.tell(Note::normal("BackOff", format!("Back-off pulling image {name:?}"))).await;
        self.stop.asked().await;
        None
    }

    /// Returns what to run, as soon as everything that it needs exists.
    async fn ordered(&mut self, image: &Image) -> Option<Order> {
        let mut told = None;
        loop {
            if self.stop.is_asked() {
                return None;
            }
            match self.order(image).await {
                Ok(order) => return Some(order),
                Err(error) if told.as_ref().is_some_and(|told| *told == error.to_string()) => {}
                Err(error) => {
                    let why = error.to_string();
                    let (place, text) = (self.place, why.clone());
                    self.worker
                        .step(|board, _| board.waiting(place, "CreateContainerConfigError", Some(text)))
                        .await;
                    self.tell(Note::warning("Failed", format!("Error: {why}"))).await;
                    told = Some(why);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(MISSING) => {}
                () = self.stop.asked() => return None,
            }
        }
    }

    async fn order(&self, image: &Image) -> Result<Order, ContainerConfigError> {
        let sources = self.sources().await.map_err(ContainerConfigError::Server)?;
        let worker = self.worker;
        let given = worker.given();
        let env = env::environment(&worker.pod, self.container, &given, &sources)?;
        let known: BTreeMap<String, String> = env.iter().cloned().collect();
        let words = |words: Option<&Vec<String>>| -> Vec<String> {
            words.into_iter().flatten().map(|word| env::expanded(word, &known)).collect()
        };
        let own = &worker.context.settings.program;
        let program =
            image.program(own, &words(self.container.command.as_ref()), &words(self.container.args.as_ref()));
        let folder = self.container.working_dir.as_ref().filter(|folder| !folder.is_empty());
        let folder = folder.map_or_else(|| worker.home(), Into::into);
        let account = Some(worker.account.folder.as_path()).filter(|folder| folder.is_dir());
        let mut mounts = worker.mounted().mounts(self.container, account, &known)?;
        mounts.push(self.words().mount()?);
        let root = worker.folder.join("roots").join(&self.container.name);
        private::make_folder(&root)?;
        let image = match image {
            Image::Own => None,
            Image::Folder(folder) => Some(folder.clone()),
        };
        let (unmounted, doors) = (worker.unmounted(&mounts), Vec::new());
        let (program, args) = (program.path, program.args);
        Ok(Order { program, args, env, folder, root, image, mounts, unmounted, doors })
    }

    /// Reads the Secrets and ConfigMaps of the environment.
    async fn sources(&self) -> Result<Sources, kube::Error> {
        let (client, pod) = (&self.worker.context.client, &self.worker.pod);
        let namespace = pod.namespace().unwrap_or_default();
        let mut sources = Sources::default();
        for (kind, name) in env::named(self.container) {
            let texts = match kind {
                Kind::Secret => {
                    let found = Api::<Secret>::namespaced(client.clone(), &namespace).get_opt(&name).await?;
                    found.map(|secret| {
                        let data = secret.data.into_iter().flatten();
                        data.filter_map(|(key, value)| Some((key, String::from_utf8(value.0).ok()?)))
                            .collect()
                    })
                }
                Kind::ConfigMap => {
                    let found =
                        Api::<ConfigMap>::namespaced(client.clone(), &namespace).get_opt(&name).await?;
                    found.map(|map| map.data.unwrap_or_default().into_iter().collect::<Texts>())
                }
            };
            sources.0.insert((kind, name), texts);
        }
        Ok(sources)
    }

    /// Runs the container once; returns the exit code, and for how long it ran.
    async fn once(
        &mut self,
        order: &Order,
        begun: &mut Option<oneshot::Sender<()>>,
    ) -> Option<(i32, Duration)> {
        let (worker, place, name) = (self.worker, self.place, &self.container.name);
        let number = self.starts;
        self.starts += 1;
        let of_start = format!("{}-{name}-{number}", worker.pod.uid().unwrap_or_default());
        let at = Timestamp::now();
        let writing = match worker.context.settings.logs.begin(&worker.logs(name), number) {
            Ok(writing) => writing,
            Err(error) => return self.not_started(&error.into(), at).await,
        };
        let (instance, group) = match self.limited(&of_start, order, &writing.log).await {
            Ok(started) => started,
            Err(error) => return self.not_started(&error, at).await,
        };
        let id = format!("admit://{of_start}");
        self.started(&instance, &id).await;
        let Exit { code, signal } = self.kept(instance, &id, begun.take()).await;
        let message = self.words().last(code, &writing).await;
        drop(writing);
        let reason = match (group.is_some_and(|group| group.ran_out_of_memory()), code) {
            (true, _) => "OOMKilled",
            (false, 0) => "Completed",
            (false, _) => "Error",
        };
        let how = ContainerStateTerminated {
            container_id: Some(id),
            exit_code: code,
            signal,
            message,
            reason: Some(reason.to_owned()),
            started_at: Some(Time(at)),
            finished_at: Some(Time(Timestamp::now())),
        };
        worker.step(|board, _| board.terminated(place, how)).await;
        Some((code, Duration::try_from(Timestamp::now().duration_since(at)).unwrap_or_default()))
    }

    /// Starts the container with its limits.
    async fn limited(
        &self,
        of_start: &str,
        order: &Order,
        log: &Log,
    ) -> Result<(Instance, Option<Group>), StartError> {
        let context = self.worker.context;
        let group = context.groups.make(of_start, limits::bounds(self.container))?;
        let doors = group.as_ref().map(Group::doors).unwrap_or_default();
        let order = Order { doors, ..order.clone() };
        Ok((Instance::start(&context.settings.program, &order, log).await?, group))
    }

    /// Reports that the container has started.
    async fn started(&self, instance: &Instance, id: &str) {
        let name = &self.container.name;
        // With a postStart hook, the container counts as running only after that is done.
        if self.post_start().is_none() {
            self.runs(id).await;
        }
        self.tell(Note::normal("Created", format!("Created container: {name}"))).await;
        self.tell(Note::normal("Started", format!("Started container {name}"))).await;
        if let Some(why) = &instance.unmounted {
            let text = format!(
                "volumes are not at their paths, for {why}; admit's own commands follow {}",
                super::super::MOUNTS
            );
            self.tell(Note::warning("NotMounted", text)).await;
        }
    }

    /// Waits for the end of a run; meanwhile runs the lifecycle hooks and the probes.
    async fn kept(&self, instance: Instance, id: &str, begun: Option<oneshot::Sender<()>>) -> Exit {
        let (errands, asked) = Errands::new();
        let (doom, end) = (watch::Sender::new(None), watch::Sender::new(None));
        let checks = Checks { run: self, errands: &errands, doom: &doom, grace: self.worker.grace() };
        let running = async {
            if let Some(handler) = self.post_start() {
                self.after_start(handler, &errands, &doom).await;
                self.runs(id).await;
            }
            checks.keep(begun).await;
        };
        let ending = self.before_end(&errands, Stop::new(&doom), &end);
        let ends = Stop::new(&end);
        tokio::select! {
            exit = instance.ended(&ends, asked) => exit,
            exit = async {
                tokio::join!(running, ending);
                std::future::pending().await
            } => exit,
        }
    }

    async fn runs(&self, id: &str) {
        let (place, health) = (self.place, probes::at_first(self.container));
        self.worker.step(|board, now| board.running(place, id.to_owned(), health, now)).await;
    }

    async fn not_started(&self, error: &StartError, at: Timestamp) -> Option<(i32, Duration)> {
        let how = ContainerStateTerminated {
            exit_code: NO_START,
            reason: Some("StartError".to_owned()),
            message: Some(error.to_string()),
            started_at: Some(Time(Timestamp::UNIX_EPOCH)),
            finished_at: Some(Time(at)),
            ..ContainerStateTerminated::default()
        };
        self.worker.step(|board, _| board.terminated(self.place, how)).await;
        self.tell(Note::warning("Failed", format!("Error: {error}"))).await;
        Some((NO_START, Duration::ZERO))
    }
}

impl Worker<'_> {
    /// Returns the environment variables that every container has.
    fn given(&self) -> Vec<(String, String)> {
        let api = &self.context.settings.api;
        let (home, port) = (self.home().display().to_string(), api.port.to_string());
        vec![
            ("HOME".to_owned(), home),
            ("KUBERNETES_SERVICE_HOST".to_owned(), api.host.clone()),
            ("KUBERNETES_SERVICE_PORT".to_owned(), port.clone()),
            ("KUBERNETES_SERVICE_PORT_HTTPS".to_owned(), port),
        ]
    }

    /// Returns the variables for containers without mounts: the Pod's identity, and where its volumes are.
    fn unmounted(&self, mounts: &[Mount]) -> Vec<(String, String)> {
        let paths: BTreeMap<_, _> = mounts.iter().map(|mount| (&mount.target, &mount.source)).collect();
        let paths = serde_json::to_string(&paths).unwrap_or_default();
        let mut env = vec![(super::super::MOUNTS.to_owned(), paths)];
        if self.account.folder.is_dir() {
            env.push(("KUBECONFIG".to_owned(), self.account.kubeconfig.display().to_string()));
        }
        env
    }

    pub(super) fn mounted(&self) -> Volumes {
        self.volumes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Creates what all containers share; returns false if the Pod is terminated meanwhile.
    pub(super) async fn prepare(&self, stop: &mut Stop) -> bool {
        let mut told = None;
        while let Err(error) = self.mount().await {
            let why = error.to_string();
            if told.as_ref() != Some(&why) {
                self.tell(Note::warning("FailedMount", why.clone())).await;
                told = Some(why);
            }
            tokio::select! {
                () = tokio::time::sleep(MISSING) => {}
                () = stop.asked() => return false,
            }
        }
        !stop.is_asked()
    }

    async fn mount(&self) -> Result<(), VolumeError> {
        let io = |why: std::io::Error| VolumeError::Folder { folder: self.folder.clone(), why };
        private::make_folder(&self.folder).map_err(io)?;
        private::make_folder(&self.home()).map_err(io)?;
        let client = &self.context.client;
        if service_account::is_wanted(client, &self.pod).await.map_err(VolumeError::Server)? {
            let token = service_account::token(client, &self.pod, None, None).await;
            let token = token.map_err(VolumeError::AccountToken)?;
            self.account
                .found(&self.context.settings.api, &self.pod.namespace().unwrap_or_default())
                .map_err(io)?;
            self.account.renew(&token).map_err(io)?;
        }
        self.refill().await
    }

    /// Returns the working folder of containers that name none.
    fn home(&self) -> std::path::PathBuf {
        self.folder.join("home")
    }

    fn logs(&self, container: &str) -> std::path::PathBuf {
        self.folder.join("logs").join(container)
    }
}
