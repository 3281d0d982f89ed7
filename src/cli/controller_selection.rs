//! Selects the controllers that a process runs and gives each its own service account, so that roles can grant it
//! what it needs and policies can tell it from the others.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kube::Client;

use super::process::Fault;
use super::scan::ScanControllerArgs;
use super::value_parsers::object;
use crate::controllers::clusteroperator;
use crate::controllers::datagather::{self, Settings};
use crate::controllers::kit::lease::Election;
use crate::controllers::kit::manager::{Manager, Member};
use crate::controllers::{cyndi, mustgather, observability, scan};

/// The flags that select controllers.
#[derive(Clone, Debug, Args)]
pub(super) struct ControllerArgs {
    /// Controllers to run, separated by commas; the last one is stopped first [default: datagather, mustgather, observability,
    /// cyndi, and, with --payload or --payload-config-map, clusteroperator]
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    controllers: Vec<Which>,

    /// Do not report as ClusterOperators, even if the cluster serves them; for clusters whose own operators have these names
    #[arg(long)]
    no_cluster_operators: bool,

    /// Folder of manifests whose ClusterOperators are created before their operators report
    #[arg(long, value_name = "DIR")]
    payload: Option<PathBuf>,

    /// ConfigMap, as NAMESPACE/NAME, with such manifests under keys that end in .yaml, .yml or .json; those of --payload come
    /// first
    #[arg(long, value_name = "CONFIGMAP", value_parser = object)]
    payload_config_map: Option<(String, String)>,

    #[command(flatten)]
    scanning: ScanControllerArgs,
}

/// The controllers by name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Which {
    Datagather,
    Mustgather,
    Clusteroperator,
    Observability,
    Cyndi,
    Scan,
}

impl Which {
    /// Returns the name of its service account.
    fn account(self) -> &'static str {
        match self {
            Self::Datagather => "admit-datagather",
            Self::Mustgather => "admit-mustgather",
            Self::Clusteroperator => "admit-clusteroperator",
            Self::Observability => "admit-observability",
            Self::Cyndi => "admit-cyndi",
            Self::Scan => "admit-scan",
        }
    }
}

/// Returns the user name of a service account.
pub(super) fn user(namespace: &str, account: &str) -> String {
    format!("system:serviceaccount:{namespace}:{account}")
}

/// The settings of all controllers that may run.
pub(super) struct Told {
    pub(super) gathering: Settings,
    pub(super) must_gathers: mustgather::Settings,
    pub(super) add_ons: observability::Settings,
    pub(super) pipelines: cyndi::Settings,
}

impl ControllerArgs {
    /// Makes `folder` the payload of the ClusterOperator controller, unless another one is named.
    pub(super) fn announce(&mut self, folder: PathBuf) {
        self.payload.get_or_insert(folder);
    }

    /// Creates a manager of the selected controllers, with one leader election. `client_of` creates the client of a service
    /// account.
    ///
    /// # Errors
    /// The errors of `client_of`, and invalid settings.
    pub(super) fn manager(
        &self,
        process: Client,
        election: Option<Election>,
        told: &Told,
        client_of: impl Fn(&str) -> Result<Client, Fault>,
    ) -> Result<Manager, Fault> {
        let mut manager = Manager::new(process, election).reports(!self.no_cluster_operators);
        let mut chosen: Vec<Which> = Vec::new();
        for which in self.wanted() {
            if chosen.contains(&which) {
                continue;
            }
            chosen.push(which);
            let members = self.members(which, client_of(which.account())?, told)?;
            manager = members.into_iter().fold(manager, Manager::with);
        }
        Ok(manager)
    }

    fn wanted(&self) -> Vec<Which> {
        if self.controllers.is_empty() {
            let announced = self.payload.is_some() || self.payload_config_map.is_some();
            let primer = announced.then_some(Which::Clusteroperator);
            let always = [Which::Datagather, Which::Mustgather, Which::Observability, Which::Cyndi];
            return always.into_iter().chain(primer).collect();
        }
        self.controllers.clone()
    }

    fn members(&self, which: Which, client: Client, told: &Told) -> Result<Vec<Member>, Fault> {
        let member = match which {
            Which::Datagather => datagather::member(client, told.gathering.clone()).map_err(Fault::usage),
            Which::Mustgather => Ok(mustgather::member(client, told.must_gathers.clone())),
            Which::Observability => Ok(observability::member(client, told.add_ons.clone())),
            Which::Scan => self.scanning.settings().map(|settings| scan::member(client, settings)),
            Which::Cyndi => return Ok(cyndi::members(&client, &told.pipelines).into()),
            Which::Clusteroperator => {
                let (payload, config_map) = (self.payload.clone(), self.payload_config_map.clone());
                if payload.is_none() && config_map.is_none() {
                    let needs = "the controller clusteroperator needs --payload or --payload-config-map";
                    return Err(Fault::usage(needs));
                }
                let settings = clusteroperator::Settings::of_config_map(config_map);
                let settings = clusteroperator::Settings { payload, ..settings };
                clusteroperator::member(client, settings).map_err(Fault::usage)
            }
        };
        member.map(|member| vec![member])
    }
}
