//! `admit up --page`: serves the page of `admit play`, which then also shows the state of this server.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};

use admit_apiserver::{Identity, Server};
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admission::Decisions;
use crate::cli::play::{self, Live};
use crate::cli::process::{self, Fault};
use crate::controllers::kit::manager::Manager;
use crate::controllers::kit::observe::Observed;
use crate::controllers::kit::tasks::Supervisor;

/// The flags of the page.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Page")]
pub(super) struct PageArgs {
    /// Serve the page of `admit play` on this port of 127.0.0.1; without PORT on a free one, which is printed
    ///
    /// The page then also shows decisions, the states of objects and the health of controllers.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    page: Option<u16>,
}

/// A page that was requested.
pub(super) struct Page {
    listener: TcpListener,
    address: SocketAddr,
    decisions: Decisions,
}

impl PageArgs {
    /// # Errors
    /// When the port cannot be opened.
    pub(super) fn listen(self) -> Result<Option<Page>, Fault> {
        let Some(port) = self.page else { return Ok(None) };
        let listener = process::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), "--page=PORT")?;
        let address = super::local(&listener)?;
        Ok(Some(Page { listener, address, decisions: Decisions::default() }))
    }
}

impl Page {
    /// Returns where decisions are recorded for the page.
    pub(super) fn decisions(&self) -> Decisions {
        self.decisions.clone()
    }
}

/// Serves the page until `stop`, if it was requested, and prints its address.
pub(super) fn start(
    page: Option<Page>,
    parts: &mut Supervisor<Fault>,
    (server, manager): (&Server, &Manager),
    stop: &CancellationToken,
) {
    let Some(Page { listener, address, decisions }) = page else { return };
    let live = Live::new(decisions, super::client(server, Identity::admin()), Observed::of(manager));
    parts.part("page", play::serve(listener, Some(live), play::TIME, stop.clone()));
    tracing::info!(%address, "page");
    // If standard output is closed, nobody wants the hint.
    let _ = writeln!(io::stdout(), "# a page that shows what happens: http://{address}/");
}
