//! Represents one container of a running Pod: its position, its state, and programs that run inside it.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ObjectReference};

use super::super::events::Note;
use super::super::images::Image;
use super::error::ProbeError;
use super::instance::{Errands, Stop};
use super::pod_status::{Health, Place};
use super::restart_policy::Policy;
use super::worker::Worker;

/// The exit code of a killed process.
pub(super) const KILLED: i32 = 137;

pub(super) struct Run<'a> {
    pub(super) worker: &'a Worker<'a>,
    pub(super) place: Place,
    pub(super) container: &'a Container,
    pub(super) policy: Policy,
    pub(super) stop: Stop,
    /// The number of starts so far.
    pub(super) starts: u32,
}

impl Run<'_> {
    pub(super) async fn tell(&self, note: Note) {
        let list = if self.place.init { "initContainers" } else { "containers" };
        let about = ObjectReference {
            field_path: Some(format!("spec.{list}{{{}}}", self.container.name)),
            ..self.worker.about.clone()
        };
        self.worker.context.events.tell(&about, note).await;
    }

    /// Reports the results of probes, if they changed.
    pub(super) async fn health(&self, health: Health) {
        self.worker.step(|board, _| board.health(self.place, health)).await;
    }

    /// Whether the container is restarted if a probe stops it.
    pub(super) fn is_started_again(&self) -> bool {
        self.policy.starts_again(KILLED) && !self.stop.is_asked()
    }

    /// Runs a probe's command inside the container.
    pub(super) async fn exec(
        &self,
        errands: &Errands,
        command: &[String],
        within: Duration,
    ) -> Result<(), ProbeError> {
        let settings = &self.worker.context.settings;
        let image = settings.images.find(self.container.image.as_deref().unwrap_or_default());
        let program = image.unwrap_or(Image::Own).program(&settings.program, command, &[]);
        match errands.run(program, within).await {
            // The container has ended, which matters more than its probe.
            None | Some((Some(0), _)) => Ok(()),
            Some((Some(_), output)) => Err(ProbeError::Output(output)),
            Some((None, _)) => Err(ProbeError::CommandTimedOut { command: command.join(" "), within }),
        }
    }
}
