//! Which controllers a process runs, and as whom: each under a service account of its own, so that roles grant it what it needs and
//! policies can tell it from the others.

use clap::{Args, ValueEnum};
use kube::Client;

use super::process::Fault;
use crate::controllers::datagather::{self, Settings};
use crate::controllers::kit::lease::Election;
use crate::controllers::kit::manager::Manager;
use crate::controllers::mustgather;

/// What was typed about the set of controllers.
#[derive(Clone, Debug, Args)]
pub(super) struct ControllingArgs {
    /// Controllers to run, with commas between them; the last one is stopped first
    #[arg(
        long,
        value_name = "NAMES",
        value_enum,
        value_delimiter = ',',
        default_value = "datagather,mustgather"
    )]
    controllers: Vec<Which>,
}

/// A controller by name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Which {
    Datagather,
    Mustgather,
}

impl Which {
    /// The name of its service account in whatever namespace.
    fn account(self) -> &'static str {
        match self {
            Self::Datagather => "admit-datagather",
            Self::Mustgather => "admit-mustgather",
        }
    }
}

/// The user that a service account is to API servers and policies.
pub(super) fn user(namespace: &str, account: &str) -> String {
    format!("system:serviceaccount:{namespace}:{account}")
}

/// What the controllers are told.
pub(super) struct Told {
    pub(super) gathering: Settings,
    pub(super) must_gathers: mustgather::Settings,
}

impl ControllingArgs {
    /// The controllers that were asked for, under one election. `client_of` makes the client of a service account.
    ///
    /// # Errors
    /// What `client_of` fails with, and settings that do not work.
    pub(super) fn manager(
        &self,
        process: Client,
        election: Option<Election>,
        told: &Told,
        client_of: impl Fn(&str) -> Result<Client, Fault>,
    ) -> Result<Manager, Fault> {
        let mut manager = Manager::new(process, election);
        let mut chosen: Vec<Which> = Vec::new();
        for which in &self.controllers {
            if chosen.contains(which) {
                continue;
            }
            chosen.push(*which);
            let client = client_of(which.account())?;
            let member = match which {
                Which::Datagather => {
                    datagather::member(client, told.gathering.clone()).map_err(Fault::usage)?
                }
                Which::Mustgather => mustgather::member(client, told.must_gathers.clone()),
            };
            manager = manager.with(member);
        }
        Ok(manager)
    }
}
