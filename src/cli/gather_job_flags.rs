//! Defines the flags for gatherings that run as Jobs, shared by the commands that run their controller.

use admit_apimachinery::pointer;
use admit_apimachinery::yaml;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::datagather_flags::DataGatherArgs;
use super::generate;
use super::process::Fault;
use super::value_parsers::{mount, name};
use crate::controllers::datagather::{JobSettings, RunnerKind};

/// The shipped service account of gathering Jobs, and the prefix of its roles.
const ACCOUNT: &str = "gather";
const ROLES: &str = "admit-gather";
/// Environment variables of this process that a Job gets as well. Proxy variables are passed by the controller, which knows all
/// settings for them.
const HANDED_ON: [&str; 1] = ["RELEASE_VERSION"];

/// The flags about where gatherings run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Data gathering")]
pub(super) struct JobArgs {
    /// Where a gathering runs
    #[arg(long, value_enum, default_value_t)]
    runner: Runner,

    /// Image of gathering Jobs [default: --operator-image]
    #[arg(long, value_name = "IMAGE")]
    job_image: Option<String>,

    /// Service account of gathering Jobs
    #[arg(long, value_name = "NAME", default_value = ACCOUNT, value_parser = name)]
    job_service_account: String,

    /// PersistentVolumeClaim that gathering Jobs store archives in [default: none: archives are lost with the Pod]
    #[arg(long, value_name = "NAME", value_parser = name)]
    job_claim: Option<String>,

    /// Path at which gathering Jobs mount the volume for archives
    #[arg(long, value_name = "PATH", default_value = "/var/lib/insights-operator", value_parser = mount)]
    job_archive_path: String,

    /// Priority class of gathering Jobs, which must exist [default: none]
    #[arg(long, value_name = "NAME", value_parser = name)]
    job_priority_class: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
enum Runner {
    /// Within this process
    #[default]
    InProcess,
    /// In a Job for each DataGather
    Job,
}

impl JobArgs {
    /// Returns the shipped service account of gathering Jobs and its roles; empty if gatherings do not run as Jobs, or use
    /// another account.
    ///
    /// # Errors
    /// For an invalid namespace.
    pub(super) fn account(&self, namespace: &str) -> Result<Vec<Value>, Fault> {
        if self.runner == Runner::InProcess || self.job_service_account != ACCOUNT {
            return Ok(Vec::new());
        }
        let rights = generate::rights_with_jobs(namespace)?;
        let documents = yaml::parse_values(&rights).map_err(|error| Fault::internal(error.message))?;
        let of_jobs = |document: &Value| {
            let name = pointer::text(document, "/metadata/name");
            name == ACCOUNT || name.starts_with(ROLES)
        };
        Ok(documents.into_iter().map(|tree| tree.value).filter(of_jobs).collect())
    }

    /// Converts the flags to settings; `image` is that of this program.
    pub(super) fn runner(&self, gathering: &DataGatherArgs, image: &str) -> RunnerKind {
        let Self { runner, job_image, job_service_account, job_claim, job_archive_path, job_priority_class } =
            self;
        if *runner == Runner::InProcess {
            return RunnerKind::InProcess;
        }
        let variable = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
        let environment =
            HANDED_ON.iter().filter_map(variable).filter(|(_, value)| !value.is_empty()).collect();
        RunnerKind::Job(JobSettings {
            image: job_image.clone().unwrap_or_else(|| image.to_owned()),
            service_account: job_service_account.clone(),
            claim: job_claim.clone(),
            archive_path: job_archive_path.clone(),
            args: gathering.of_job(),
            environment,
            priority_class: job_priority_class.clone(),
        })
    }
}
