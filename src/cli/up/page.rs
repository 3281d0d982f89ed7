//! `admit up --page`: the page of `admit play`, with what happens in this server.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cli::play::{self, Live};
use crate::cli::process::{self, Fault};
use crate::controllers::kit::tasks::Supervisor;

/// What was typed about the page.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Page")]
pub(super) struct PageArgs {
    /// Serve the page of `admit play` on this port of 127.0.0.1, which then also shows decisions, the states of objects and how
    /// controllers are; without PORT a free one, which is printed
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    page: Option<u16>,
}

/// A page that was asked for.
pub(super) struct Page {
    listener: TcpListener,
    address: SocketAddr,
}

impl PageArgs {
    /// # Errors
    /// When the port is taken.
    pub(super) fn listen(self) -> Result<Option<Page>, Fault> {
        let Some(port) = self.page else { return Ok(None) };
        let listener = process::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), "--page=PORT")?;
        let address = super::local(&listener)?;
        Ok(Some(Page { listener, address }))
    }
}

impl Page {
    /// Serves it until `stop`, and says where.
    pub(super) fn start(self, parts: &mut Supervisor<Fault>, live: Live, stop: &CancellationToken) {
        let Self { listener, address } = self;
        parts.part("page", play::serve(listener, Some(live), play::TIME, stop.clone()));
        tracing::info!(%address, "page");
        // Whoever closed standard output does not want the hint.
        let _ = writeln!(io::stdout(), "# a page that shows what happens: http://{address}/");
    }
}
