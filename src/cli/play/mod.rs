//! `admit play`: serves a page on 127.0.0.1 that shows what expressions, definitions and policies decide while they are written.
//!
//! ```text
//! browser ──GET──► page: index.html, play.css, play.js         nothing is loaded from elsewhere
//!         ──POST /evaluate {mode, fields}──► modes ──► Answer   what check, explain, eval and test find
//!         ──POST /pictures──► modes ──► Picture                 what states draws
//!         ──GET /live──► live                                   of `admit up --page`: decisions, objects, controllers
//!         ──GET /live/events──► listening ──► live              the same, whenever it changes
//! ```
//!
//! The script only draws: all that is shown is computed here, by the code of the other commands.

mod answer;
mod asked;
mod examples;
mod examples_of_servers;
mod guard;
mod listening;
mod live;
mod modes;
mod request;
mod server;
mod shown;
mod work;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(super) use self::live::Live;
use self::work::Bounds;
use super::process::{self, Fault, GRACE, Threads};
use super::value_parsers::limit;
use super::{Exit, render};
use crate::admission::{self, Port, Shutdown};
use crate::telemetry::{LogFormat, Metrics};

/// The default limit for one evaluation.
pub(super) const TIME: Duration = Duration::from_secs(5);

/// Arguments of `admit play`.
#[derive(Debug, Args)]
#[command(after_help = "\
The page has a mode for each place where Kubernetes evaluates CEL, and examples for each. While you type, it shows the \
verdict, the message and its field, the value of every part of every expression, the cost of expressions beside their limits, \
the branches that were not reached, and the allowed transitions between states. Its link contains the whole example. Nothing \
is loaded from elsewhere, nothing is stored, and only this machine can reach it. `admit schema play` prints the JSON Schema of \
its answers.

Examples:
  admit play
  admit play --port 8090

Exit codes: 0 stopped on request, 2 usage, or the port is taken, 4 internal error")]
pub(super) struct PlayArgs {
    /// Port on 127.0.0.1 to serve the page on; 0 picks a free one, which is printed
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// Time limit for one evaluation
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = limit)]
    timeout: SignedDuration,
}

impl PlayArgs {
    pub(super) fn run(self) -> Exit {
        process::run(Threads::Carry, LogFormat::default(), GRACE, move |shutdown| self.serve(shutdown))
    }

    async fn serve(self, asked: CancellationToken) -> Result<(), Fault> {
        let listener = process::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)), "--port")?;
        let address = listener.local_addr().map_err(Fault::internal)?;
        render::print(&format!("http://{address}/\n"));
        serve(listener, None, self.timeout.unsigned_abs(), asked).await
    }
}

/// Serves the page until `asked` completes; each evaluation may take `time`. With `live` it also shows the state of a server.
///
/// # Errors
/// When the listener fails.
pub(super) async fn serve(
    listener: TcpListener,
    live: Option<Live>,
    time: Duration,
    asked: CancellationToken,
) -> Result<(), Fault> {
    let live = live.map(|live| live.until(asked.clone()));
    let router = server::router(Bounds::new(time), live);
    let port = Port { listener, tls: None, router, metrics: Arc::new(Metrics::default()) };
    admission::serve(port, Shutdown { asked, linger: Duration::ZERO }).await.map_err(Fault::internal)
}
