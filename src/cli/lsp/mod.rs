//! `admit lsp`: runs a language server for CEL in CRDs, policies and suites.
//!
//! ```text
//! stdin ──wire──► Message ──server──► answers ──► admit_language::Workspace
//!                            ├───► documents: what is open ──► folder: policies and definitions beside it
//!                            ├───► offered: what the editor may ask
//!                            ├───► run: a case of a suite
//!                            │     outline: what files consist of
//! stdout ◄──wire── Message ◄─┴─ protocol: places and names as the protocol has them
//! ```
//!
//! One thread answers requests in their order. Files are checked when no message waits, and a message that arrives
//! meanwhile aborts the check, so that diagnostics are always those of the newest text.

mod answers;
mod documents;
mod folder;
mod offered;
mod outline;
mod protocol;
mod run;
mod server;
mod wire;

use clap::Args;

use self::server::Server;
pub use self::server::serve;
use super::Exit;
use super::process::{self, Fault};

/// The options of the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct LspOptions {
    /// Whether files may have objects of kinds that no policy uses.
    pub ignore_unknown: bool,
}

/// Arguments of `admit lsp`.
#[derive(Debug, Args)]
#[command(after_help = "\
Speaks the Language Server Protocol over standard input and output; an editor starts it (editors/ has configurations for VS \
Code, Neovim and Helix). For files it reports the findings of `admit lint` at their places, and mistakes in suites; for \
expressions the types, the documentation with the first Kubernetes release, and the estimated cost of a rule and its causes. \
It completes fields, functions, names and values, even while the text does not parse, finds definitions, renames variables of \
policies, and offers a fix if a mistake suggests the intended name. It lists the contents of files: documents, rules, \
variables, cases. Each case of a suite can be run as it is saved; the values of expressions are then shown beside their lines.

Policies and definitions in the folders that the editor has open are loaded: up to 2,000 files, or 64 MiB of them; the editor \
is notified if there are more. A document of more than 16 MiB is not checked, which is also reported.

Examples:
  admit lsp
  admit lsp --ignore-unknown

Exit codes: 0 the editor shut it down, 1 the editor disconnected without shutting it down, 2 usage, 4 internal error")]
pub(super) struct LspArgs {
    /// Accept objects of kinds that no policy uses in the files
    #[arg(long)]
    ignore_unknown: bool,

    /// Communicate over standard input and output; accepted for compatibility: there is no other way
    #[arg(long, hide = true)]
    stdio: bool,
}

impl LspArgs {
    pub(super) fn run(self) -> Exit {
        let options = LspOptions { ignore_unknown: self.ignore_unknown };
        match wire::stdio() {
            Ok((connection, writer)) => {
                let exit = Server::new(connection, options).run();
                // The last answers are written before the end; if the pipe is closed, nobody can be told.
                let _ = writer.join();
                exit
            }
            Err(error) => process::fail(&Fault::internal(format!("cannot start a thread: {error}"))),
        }
    }
}
